//! The environment of an engine's process: variables that most programs need, and those that its profile names. Secrets
//! of other programs are left out.

use std::ffi::OsStr;

use crate::model::IntoMap;
use crate::program::Variables;

/// Variables that most programs need, on any system. `*` matches the rest of a name.
const COMMON: &[&str] = &[
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
    // What tells a clone from others.
    "SQUAD_CLONE",
    "SQUAD_PORT",
    "COMPOSE_PROJECT_NAME",
];

/// The common variables alone.
pub(crate) fn common(variables: &Variables) -> Variables {
    allowed(variables, &[])
}

/// The common variables, and those that match the patterns of a profile.
pub(in crate::engine) fn allowed(variables: &Variables, patterns: &[String]) -> Variables {
    let is_allowed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        COMMON.iter().copied().chain(patterns.iter().map(String::as_str)).any(|pattern| matches(pattern, name))
    };
    variables.iter().filter(|(name, _)| is_allowed(name)).map(|(name, value)| (name.clone(), value.clone())).into_map()
}

fn matches(pattern: &str, name: &str) -> bool {
    let same = |a: &str, b: &str| if cfg!(windows) { a.eq_ignore_ascii_case(b) } else { a == b };
    match pattern.strip_suffix('*') {
        Some(prefix) => name.get(..prefix.len()).is_some_and(|start| same(start, prefix)),
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
