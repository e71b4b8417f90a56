//! The files and texts that a tool call writes: for the CLI's own tools, and MCP tools with similar argument names.

use serde_json::Value;

use crate::engine::Writing;

const PATHS: [&str; 4] = ["path", "file_path", "filePath", "filename"];
const TEXTS: [&str; 6] = ["file_text", "content", "contents", "new_str", "new_string", "newString"];
const OLD: [&str; 3] = ["old_str", "old_string", "oldString"];

pub(super) fn writes(tool: &str, arguments: &Value) -> Vec<Writing> {
    if tool == "apply_patch" {
        let patch = ["patch", "input"].iter().find_map(|name| arguments.get(name)).unwrap_or(arguments);
        return patch.as_str().map(patched).unwrap_or_default();
    }
    let find = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_str()).map(str::to_owned);
    let writing = find(&PATHS).zip(find(&TEXTS)).map(|(path, text)| {
        let old = find(&OLD);
        Writing { path, is_whole: old.is_none(), old, text }
    });
    writing.into_iter().collect()
}

/// The files that a patch adds or changes, with the added lines.
fn patched(patch: &str) -> Vec<Writing> {
    let mut files: Vec<Writing> = Vec::new();
    for line in patch.lines() {
        let named = ["*** Add File: ", "*** Update File: "].iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(path) = named {
            files.push(Writing { path: path.trim().to_owned(), old: None, text: String::new(), is_whole: false });
        } else if let (Some(added), Some(file)) = (line.strip_prefix('+'), files.last_mut()) {
            file.text.push_str(added);
            file.text.push('\n');
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_that_write_say_where_and_what() {
        let write = |path: &str, old: Option<&str>, text: &str| Writing {
            path: path.to_owned(),
            old: old.map(str::to_owned),
            text: text.to_owned(),
            is_whole: old.is_none(),
        };
        let added = |path, text| Writing { is_whole: false, ..write(path, None, text) };
        let patch =
            "*** Begin Patch\n*** Add File: a.md\n+# A\n+b\n*** Update File: c.md\n@@\n-old\n+new\n*** End Patch\n";
        let both = vec![added("a.md", "# A\nb\n"), added("c.md", "new\n")];
        for (tool, arguments, wanted) in [
            ("create", json!({"path": "a.md", "file_text": "# A"}), vec![write("a.md", None, "# A")]),
            ("edit", json!({"path": "a.md", "old_str": "a", "new_str": "b"}), vec![write("a.md", Some("a"), "b")]),
            ("files-write_file", json!({"path": "/p/a.md", "content": "x"}), vec![write("/p/a.md", None, "x")]),
            ("apply_patch", json!({ "patch": patch }), both.clone()),
            ("apply_patch", json!(patch), both),
            ("view", json!({"path": "a.md"}), Vec::new()),
            ("bash", json!({"command": "ls"}), Vec::new()),
            ("create", json!({"path": 1, "file_text": []}), Vec::new()),
            ("apply_patch", json!({}), Vec::new()),
            ("", Value::Null, Vec::new()),
        ] {
            assert_eq!(writes(tool, &arguments), wanted, "{tool} {arguments}");
        }
    }
}
