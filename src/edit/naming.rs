//! Replaces a name by another where it is unambiguous.

/// A member's old and new name.
pub(super) struct Naming<'a> {
    /// Without its remark.
    pub(super) old: &'a str,
    pub(super) old_slug: &'a str,
    pub(super) new: &'a str,
    pub(super) new_slug: &'a str,
}

impl Naming<'_> {
    /// Replaces the name as a whole word, with or without `@`, but not in paths and addresses.
    pub(super) fn in_words(&self, text: &str) -> String {
        self.replaced(text, |_| true)
    }

    /// The same; or else the first word of a longer name.
    pub(super) fn in_names(&self, text: &str) -> String {
        let whole = self.in_words(text);
        match self.old.split_once(' ') {
            Some((first, _)) if whole == text => Naming { old: first, old_slug: first, ..*self }.in_words(text),
            _ => whole,
        }
    }

    /// Replaces only `@mentions`.
    pub(super) fn in_mentions(&self, text: &str) -> String {
        self.replaced(text, |is_mention| is_mention)
    }

    /// Whether a text contains the name, in the same case, or a mention.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.occurrences(text).iter().any(|found| found.written == self.old || found.is_mention)
    }

    fn replaced(&self, text: &str, is_wanted: impl Fn(bool) -> bool) -> String {
        let (mut new, mut rest) = (String::with_capacity(text.len()), 0);
        for Occurrence { start, written, is_mention } in self.occurrences(text) {
            if is_wanted(is_mention) {
                new.push_str(&text[rest..start]);
                new.push_str(self.like(written, is_mention));
                rest = start + written.len();
            }
        }
        new.push_str(&text[rest..]);
        new
    }

    /// The new name in the form of the old one. A mention is one word.
    fn like(&self, written: &str, is_mention: bool) -> &str {
        let is_slug = written == self.old_slug && (is_mention || self.old != self.old_slug);
        if is_slug || (is_mention && self.new.contains(char::is_whitespace)) { self.new_slug } else { self.new }
    }

    fn occurrences<'t>(&self, text: &'t str) -> Vec<Occurrence<'t>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(c) = text[at..].chars().next() {
            let word = [self.old, self.old_slug].iter().find_map(|name| name_at_start(&text[at..], name));
            match word.filter(|word| is_whole(text, at, at + word.len())) {
                Some(written) => {
                    found.push(Occurrence { start: at, written, is_mention: text[..at].ends_with('@') });
                    at += written.len();
                }
                None => at += c.len_utf8(),
            }
        }
        found
    }
}

struct Occurrence<'t> {
    /// The offset after the `@`.
    start: usize,
    written: &'t str,
    is_mention: bool,
}

/// The name at the start of a text, in any case.
fn name_at_start<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.nth(name.chars().count().checked_sub(1)?)?;
    Some(&text[..end]).filter(|start| start.to_lowercase() == name.to_lowercase())
}

/// Whether a word stands alone, and not in a longer word, a path, a file name, an address or a package.
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let (before, after) = (&text[..start], &text[end..]);
    let plain = before.strip_suffix('@').unwrap_or(before);
    let is_mention = plain.len() < before.len();
    let is_part = plain.ends_with(|c: char| is_inner(c) || matches!(c, '/' | '\\' | '.' | '@'));
    let is_label = plain.ends_with(':') && !is_mention;
    let mut next = after.chars();
    let goes_on = match next.next() {
        Some('.' | '-') => next.next().is_some_and(char::is_alphanumeric),
        Some('/') => is_mention || next.next().is_some_and(char::is_alphanumeric),
        Some('\\' | '@') => true,
        Some(c) => c.is_alphanumeric() || c == '_',
        None => false,
    };
    !is_part && !is_label && !goes_on
}

/// Replaces a folder or file in paths.
pub(super) fn with_paths(text: &str, old: &str, new: &str) -> String {
    let (mut moved, mut rest) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(old) {
        let (before, after) = (&text[..at], &text[at + old.len()..]);
        let is_led = !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
        if is_led && !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-')) {
            moved.push_str(&text[rest..at]);
            moved.push_str(new);
            rest = at + old.len();
        }
    }
    moved.push_str(&text[rest..]);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: Naming<'_> = Naming { old: "Ada", old_slug: "ada", new: "Zoe Lee", new_slug: "zoe-lee" };

    #[test]
    fn only_what_is_the_name_changes() {
        for (text, words) in [
            ("Ada and @ada, @Ada", "Zoe Lee and @zoe-lee, @zoe-lee"),
            ("Ada's **Ada** `ada` (Ada)", "Zoe Lee's **Zoe Lee** `zoe-lee` (Zoe Lee)"),
            ("Adam Canada ada-x x_ada ada.md a/ada ada/b ada@x.org x@ada.org", ""),
            ("@ada/client squad:ada C:\\ada", ""),
            ("Owner: Ada. Ada, Bob/Ada", "Owner: Zoe Lee. Zoe Lee, Bob/Ada"),
            ("ADA — Ada", "Zoe Lee — Zoe Lee"),
        ] {
            let words = if words.is_empty() { text } else { words };
            assert_eq!(ADA.in_words(text), words);
        }
        assert_eq!(ADA.in_mentions("Ada, @ada; mail x@ada"), "Ada, @zoe-lee; mail x@ada");
        assert!(ADA.is_in("ask Ada") && !ADA.is_in("ask ada") && !ADA.is_in("Adam"));
    }

    #[test]
    fn paths_lead_where_the_folder_is() {
        let text = "[charter](.squad/agents/ada/charter.md) agents/ada agents/adam agents/ada-x subagents/ada";
        let moved = "[charter](.squad/agents/zoe/charter.md) agents/zoe agents/adam agents/ada-x subagents/ada";
        assert_eq!(with_paths(text, "agents/ada", "agents/zoe"), moved);
    }
}
