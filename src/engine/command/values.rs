//! The values of placeholders in command lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    pub(crate) prompt: Option<String>,
    pub(crate) chat_id: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) role_id: Option<String>,
    pub(crate) task: Option<String>,
    pub(crate) model: Option<String>,
    /// For a command that names a new chat itself.
    pub(crate) generated_uuid: Option<String>,
    /// The arguments of the engine's mode.
    pub(crate) mode: Vec<String>,
    /// The arguments that configure the server of squad's tools.
    pub(crate) tools: Vec<String>,
}

impl Values {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = match name {
            "prompt" => &self.prompt,
            "chatId" => &self.chat_id,
            "cwd" => &self.cwd,
            "roleId" => &self.role_id,
            "task" => &self.task,
            "model" => &self.model,
            "generatedUuid" => &self.generated_uuid,
            _ => &None,
        };
        value.as_deref()
    }
}

/// Puts a space before a value that would otherwise be taken for an option.
pub(super) fn escape_option(value: &str) -> String {
    if value.starts_with('-') { format!(" {value}") } else { value.to_owned() }
}
