//! What an engine's process sees of the environment: what programs need to run, and what its profile names. Secrets of
//! other programs are none of its business.

use std::ffi::OsStr;

use crate::program::Variables;

/// Needed by programs as such, on one system or another. A star stands for the rest of a name.
const USUAL: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "TEMP",
    "TMP",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "__CF_USER_TEXT_ENCODING",
];

/// The variables that a process is given.
pub(super) fn allowed(variables: &Variables, named: &[String]) -> Variables {
    let is_allowed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        USUAL.iter().copied().chain(named.iter().map(String::as_str)).any(|pattern| fits(pattern, name))
    };
    variables.iter().filter(|(name, _)| is_allowed(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn fits(pattern: &str, name: &str) -> bool {
    let same = |a: &str, b: &str| if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b };
    match pattern.strip_suffix('*') {
        Some(start) => name.get(..start.len()).is_some_and(|begin| same(begin, start)),
        None => same(pattern, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_others_are_not_passed_on() {
        let names =
            ["PATH", "HOME", "LC_ALL", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "ACME_KEY", "ACME", "SSH_AUTH_SOCK"];
        let variables: Variables = names.map(|name| (name.into(), "x".into())).into();
        let allowed = allowed(&variables, &["ACME_*".to_owned()]);
        let left: Vec<&str> = allowed.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(left, ["ACME_KEY", "HOME", "LC_ALL", "PATH"]);
    }
}
