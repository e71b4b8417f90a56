//! Front matter without some of its fields.

use super::words::listed;

/// What a program would run, or be sent to, or be allowed: another's text brings none of it along.
const ACTIVE: &str = "\
    allowed-tools, base_url, baseurl, command, commands, endpoint, endpoints, env, environment, fallback, hooks, mcp, \
    mcp-servers, mcp_servers, mcpservers, permission, permission-mode, permissionmode, permissions, provider, \
    sandbox_mode";

/// A text without the fields of its front matter that are more than words, and their names.
pub(crate) fn without_active_fields(text: &str) -> (String, Vec<String>) {
    let plain = super::without_mark(text);
    let fence = ["---", "+++"].into_iter().find(|fence| plain.lines().next().map(str::trim_end) == Some(fence));
    let Some(fence) = fence else { return (text.to_owned(), Vec::new()) };
    let (mut kept, mut removed) = (String::new(), Vec::new());
    let (mut is_matter, mut is_removed) = (true, false);
    for (number, line) in plain.split_inclusive('\n').enumerate() {
        if number > 0 && is_matter && line.trim_end() == fence {
            (is_matter, is_removed) = (false, false);
        } else if number > 0 && is_matter {
            // What is no field belongs to the one above.
            if let Some(name) = field_of(line) {
                is_removed = listed(ACTIVE, &name.to_lowercase());
                removed.extend(is_removed.then(|| name.to_owned()));
            }
        }
        if !is_removed {
            kept.push_str(line);
        }
    }
    // Without an end it is no front matter.
    if is_matter || removed.is_empty() { (text.to_owned(), Vec::new()) } else { (kept, removed) }
}

/// `hooks: …`, `"hooks": …`, `hooks = …`, `[hooks.before]`
fn field_of(line: &str) -> Option<&str> {
    let head = match line.strip_prefix('[') {
        Some(table) => table.trim_start_matches('[').split([']', '.']).next()?,
        None => line.split([':', '=', '.']).next().filter(|head| head.len() < line.trim_end().len())?,
    };
    let name = head.trim_end().trim_matches(['"', '\'']);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_and_the_rest_goes() {
        let text = "---\r\nname: Ada\r\nhooks:\r\n  before:\r\n  - run: rm\r\nmodel: x\r\n\"mcpServers\": {a: b}\r\n---\r\n\r\nhooks: stay\r\n";
        let (kept, removed) = without_active_fields(text);
        assert_eq!(kept, "---\r\nname: Ada\r\nmodel: x\r\n---\r\n\r\nhooks: stay\r\n");
        assert_eq!(removed, ["hooks", "mcpServers"]);
        let toml = "+++\nname = \"Ada\"\n[hooks.a]\nrun = \"rm\"\nenv.x = 1\n+++\nText\n";
        let (kept, removed) = without_active_fields(toml);
        assert!(!kept.contains("[hooks") && !kept.contains("env.x") && kept.ends_with("+++\nText\n"), "{kept}");
        assert_eq!(removed, ["hooks", "env"]);
        for same in ["hooks: x\n", "---\nhooks: x\nno end\n", "---\nname: x\n---\nText\n", ""] {
            assert_eq!(without_active_fields(same), (same.to_owned(), Vec::new()));
        }
    }
}
