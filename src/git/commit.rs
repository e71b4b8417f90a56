use gix::ObjectId;
use jiff::Timestamp;

/// The author and committer of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) email: String,
}

impl Identity {
    /// Reads `Name <email> seconds zone`, the form in which git prints an identity.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('<')?;
        let (email, _) = rest.rsplit_once('>')?;
        Some(Self { name: name.trim().to_owned(), email: email.trim().to_owned() })
    }

    /// The form used in a commit object. Like git, drops characters that would end the field early.
    pub(super) fn signature(&self, at: Timestamp) -> String {
        let email = clean(&self.email);
        let name = match clean(&self.name) {
            name if name.is_empty() => email.clone(),
            name => name,
        };
        format!("{name} <{email}> {} +0000", at.as_second().max(0))
    }
}

fn clean(text: &str) -> String {
    let text: String = text.chars().filter(|character| !matches!(character, '<' | '>' | '\n' | '\r' | '\0')).collect();
    text.trim().to_owned()
}

/// The bytes of a commit object. Author and committer are the same, the time is in UTC.
pub(super) fn encode(
    tree: ObjectId,
    parents: &[ObjectId],
    identity: &Identity,
    at: Timestamp,
    message: &str,
) -> Vec<u8> {
    let signature = identity.signature(at);
    let parents: String = parents.iter().map(|parent| format!("parent {parent}\n")).collect();
    let message = message_text(message);
    format!("tree {tree}\n{parents}author {signature}\ncommitter {signature}\n\n{message}").into_bytes()
}

/// Makes a message end with exactly one line break and removes NUL, which git would refuse.
pub(super) fn message_text(message: &str) -> String {
    format!("{}\n", message.replace('\0', "").trim_end())
}

pub(super) fn subject(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
