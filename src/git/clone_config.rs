//! The settings of the repository that an agent sees in its clone.

use super::{error::Error, repository::Repository};

/// Settings that decide how files are written and compared.
const CONVERSIONS: &str = r"^core\.(autocrlf|eol|safecrlf|filemode|symlinks|precomposeunicode|longpaths)$";
/// Filters, and remotes from which git fetches what a partial clone lacks.
const NAMED: &str = r"^(filter\..*\.(clean|smudge|process|required)|remote\..*\.(promisor|partialclonefilter))$";

impl Repository {
    /// What an agent commits there by itself is not signed: nobody types a passphrase. Nothing is pushed.
    /// `ignores_case`: the file system of the clone does.
    pub(super) fn config_for_agents(&self, ignores_case: bool) -> Result<String, Error> {
        let is_sha256 = self.hash() != gix::hash::Kind::Sha1;
        let mut config = "[core]\n\tbare = false\n\tlogAllRefUpdates = true\n\thooksPath = /dev/null\n[gc]\n\tauto = \
                          0\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n"
            .to_owned();
        config += &format!("[core]\n\tignoreCase = {ignores_case}\n");
        let mut extensions = String::new();
        if is_sha256 {
            extensions += "\tobjectFormat = sha256\n";
        }
        for (name, value) in self.settings_like(CONVERSIONS)? {
            let is_plain = !value.is_empty() && value.chars().all(|character| character.is_ascii_alphanumeric());
            if let Some(name) = name.strip_prefix("core.").filter(|_| is_plain) {
                config += &format!("[core]\n\t{name} = {value}\n");
            }
        }
        // Where squad leaves a filter out, the files there are as they are stored.
        let left_out = self.filters_in_tree();
        for (key, value) in self.settings_like(NAMED)? {
            let Some((section, rest)) = key.split_once('.') else { continue };
            let Some((name, setting)) = rest.rsplit_once('.') else { continue };
            if section == "filter" && left_out.iter().any(|other| other == name) {
                continue;
            }
            config += &format!("[{section} {}]\n\t{setting} = {}\n", quoted(name), quoted(&value));
        }
        for Promisor { name, url } in self.promisors()? {
            let Some(url) = url else { continue };
            let (section, url) = (quoted(&name), quoted(&url));
            config += &format!("[remote {section}]\n\turl = {url}\n\tpushUrl = /dev/null\n");
            extensions += &format!("\tpartialClone = {}\n", quoted(&name));
        }
        let version = u8::from(!extensions.is_empty());
        config += &format!("[core]\n\trepositoryFormatVersion = {version}\n");
        if !extensions.is_empty() {
            config += &format!("[extensions]\n{extensions}");
        }
        Ok(config)
    }

    /// Why agents' git cannot read all of the history, if this is a partial clone.
    pub(crate) fn obstacle_to_history(&self) -> Result<Option<String>, Error> {
        let secret = self.promisors()?.into_iter().find(|promisor| promisor.url.is_none());
        Ok(secret.map(|Promisor { name, .. }| {
            format!("this is a partial clone of {name}, whose address has a password in it, which agents are not given")
        }))
    }

    fn promisors(&self) -> Result<Vec<Promisor>, Error> {
        let mut found = Vec::new();
        for (key, value) in self.settings_like(r"^remote\..*\.promisor$")? {
            let name = key.strip_prefix("remote.").and_then(|rest| rest.strip_suffix(".promisor"));
            let Some(name) = name.filter(|_| value == "true") else { continue };
            let url = self.call(&["ls-remote", "--get-url", "--", name]).succeed()?.text();
            found.push(Promisor { name: name.to_owned(), url: (!has_password(&url)).then(|| self.absolute(url)) });
        }
        Ok(found)
    }

    /// git takes a path for one from the work tree.
    fn absolute(&self, url: String) -> String {
        let is_relative = url.starts_with("./") || url.starts_with("../");
        match self.work_dir().filter(|_| is_relative) {
            Some(root) => root.join(url).display().to_string(),
            None => url,
        }
    }

    /// The settings whose names match, and their values.
    fn settings_like(&self, pattern: &str) -> Result<Vec<(String, String)>, Error> {
        let listed = self.call(&["config", "--null", "--get-regexp", pattern]).run()?.stdout;
        let setting = |record: &[u8]| {
            let text = String::from_utf8_lossy(record);
            // `name`, newline, value; of a truth that is only named, no value.
            let (name, value) = text.split_once('\n').unwrap_or((&text, "true"));
            (name.to_owned(), value.to_owned())
        };
        Ok(listed.split(|byte| *byte == 0).filter(|record| !record.is_empty()).map(setting).collect())
    }
}

/// A remote that has what a partial clone lacks.
struct Promisor {
    name: String,
    /// `None`: it has a password in it.
    url: Option<String>,
}

/// Whether an address has a password, or a token in its place: in one of HTTP, the user's name may be one.
fn has_password(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':') || scheme.starts_with("http"))
}

/// As a value, or a name of a section.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted += "\\n",
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_passwords_are_told_from_others() {
        for (url, expected) in [
            ("https://example.com/a.git", false),
            ("https://token@example.com/a.git", true),
            ("https://ann:secret@example.com/a.git", true),
            ("https://example.com/a@b", false),
            ("ssh://git@example.com/a.git", false),
            ("ssh://git:secret@example.com/a.git", true),
            ("git@example.com:a.git", false),
            ("file:///a@b", false),
            ("../a", false),
        ] {
            assert_eq!(has_password(url), expected, "{url}");
        }
    }
}
