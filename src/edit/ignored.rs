//! Edits the lines of `.gitignore` and `.gitattributes` about the team folder.

/// Paths of decisions and histories, which git must not ignore.
const NEEDED: [&str; 8] = [
    ".squad/decisions",
    ".squad/decisions/inbox",
    ".squad/decisions.md",
    ".squad/agents/*/history.md",
    ".ai-team/decisions",
    ".ai-team/decisions/inbox",
    ".ai-team/decisions.md",
    ".ai-team/agents/*/history.md",
];

/// Another tool's comments around such lines.
const COMMENTS: [&str; 2] = [
    "# Squad: state owned by squad-state branch (two-layer/orphan backend)",
    "# /Squad: state owned by squad-state branch",
];

/// Removes lines of a `.gitignore` that hide decisions or histories. Also returns their numbers.
pub(crate) fn without_hidden_decisions(text: &str) -> (String, Vec<usize>) {
    let (mut kept, mut lifted) = (String::with_capacity(text.len()), Vec::new());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if hides_decisions(line.trim_end()) {
            lifted.push(number + 1);
        } else {
            kept.push_str(line);
        }
    }
    (kept, lifted)
}

fn hides_decisions(line: &str) -> bool {
    let pattern = line.strip_prefix("**/").unwrap_or(line);
    let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
    let pattern = ["/**", "/*", "/*.md", "/"].iter().find_map(|end| pattern.strip_suffix(end)).unwrap_or(pattern);
    NEEDED.contains(&pattern) || COMMENTS.contains(&line)
}

/// Renames a folder in patterns that begin with it.
pub(crate) fn with_folder_renamed(text: &str, from: &str, to: &str) -> String {
    let renamed = |line: &str| {
        let pattern = line.trim_start_matches(['!', '/']);
        let (before, rest) = (&line[..line.len() - pattern.len()], pattern.strip_prefix(from));
        match rest.filter(|rest| rest.trim_end().is_empty() || rest.starts_with(['/', ' ', '\t'])) {
            Some(rest) => format!("{before}{to}{rest}"),
            None => line.to_owned(),
        }
    };
    text.split_inclusive('\n').map(renamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_hide_decisions_go() {
        let text = "target/\r\n# Squad\r\n.squad/log/\r\n/.squad/decisions/inbox/ \r\n**/.ai-team/decisions/inbox/*\r\n\
            !.squad/decisions/inbox/a.md\r\n.squad/decisions/other/\r\n.squad/decisions.md";
        let (kept, lifted) = without_hidden_decisions(text);
        assert_eq!(lifted, [4, 5, 8]);
        let expected =
            "target/\r\n# Squad\r\n.squad/log/\r\n!.squad/decisions/inbox/a.md\r\n.squad/decisions/other/\r\n";
        assert_eq!(kept, expected);
    }

    #[test]
    fn patterns_follow_a_folder() {
        let text =
            ".ai-team/log/\n!/.ai-team/x merge=union\n.ai-team\n.ai-team-templates\n# .ai-team/\ndocs/.ai-team/\n";
        let renamed = with_folder_renamed(text, ".ai-team", ".squad");
        let expected = ".squad/log/\n!/.squad/x merge=union\n.squad\n.ai-team-templates\n# .ai-team/\ndocs/.ai-team/\n";
        assert_eq!(renamed, expected);
    }
}
