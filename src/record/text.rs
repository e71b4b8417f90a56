//! Shortens long texts before they are stored.

/// Bytes of a command that are stored in full.
const WHOLE: usize = 16 * 1024;
/// Bytes stored of a tool's result: its end, where the error is.
const END: usize = 4 * 1024;

/// The start and end of a longer text, with the number of bytes left out.
pub(super) fn head_and_tail(text: &str) -> String {
    if text.len() <= WHOLE {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(WHOLE / 2), text.ceil_char_boundary(text.len() - WHOLE / 2));
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

pub(super) fn tail(text: &str) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(END));
    text[start..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_above_the_limit_keeps_head_and_tail() {
        let whole = "x".repeat(WHOLE);
        assert_eq!(head_and_tail(&whole), whole);
        let long = format!("begin{}end", "é".repeat(WHOLE));
        let cut = head_and_tail(&long);
        let (head, rest) = cut.split_once("\n[… ").expect("a mark");
        let (count, tail) = rest.split_once(" bytes left out …]\n").expect("a count");
        assert!(long.starts_with(head) && long.ends_with(tail) && head.len() + tail.len() <= WHOLE);
        assert_eq!(head.len() + tail.len() + count.parse::<usize>().expect("a number"), long.len());
        assert!(head.len() + tail.len() > WHOLE - 8);
    }

    #[test]
    fn a_result_keeps_its_end() {
        assert_eq!(tail("short"), "short");
        let long = format!("{}end", "é".repeat(END));
        assert!(tail(&long).ends_with("end") && (END - 1..=END).contains(&tail(&long).len()));
    }
}
