//! Feeds the parsers, the router and the rules for secrets what nobody would write.
//!
//! `cargo test --features fuzzing --test fuzz -- [SECONDS] [PARSER] [SEED]` changes the texts of `fixtures` at
//! random for so many seconds per parser, and reports how many it fed and what it found. The same seed feeds the same
//! texts. Without arguments it is a short test among the others.

use std::panic;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use squad::fuzzing::{PARSERS, feed, seed};

/// A text that takes longer than this is a finding.
const SLOW: Duration = Duration::from_secs(2);

/// Texts grow by mutation; longer ones begin again.
const LONGEST: usize = 64 * 1024;

/// What parsers have reason to look at.
const TOKENS: [&str; 56] = [
    "@",
    "@grace ",
    "Milo, ",
    "don't ",
    " and ",
    "和",
    "/",
    ".",
    "'",
    "’",
    "?",
    "aB",
    "|",
    "|-|-|\n",
    "\n",
    "\r\n",
    "\r",
    "# ",
    "## ",
    "###### ",
    "---\n",
    "===\n",
    "```",
    "~~~",
    "> ",
    "- ",
    "1. ",
    "  ",
    "\t",
    "**",
    "`",
    "[",
    "](",
    ")",
    "(",
    "{",
    "}",
    "\"",
    "\\",
    ":",
    ": ",
    "→",
    "—",
    "ΓÇö",
    "2026-01-05",
    "T10:00:00Z",
    "May 5, 2026",
    "\u{fffd}",
    "\u{feff}",
    "👤",
    "é",
    "\u{0}",
    "&amp;",
    "<!--",
    "-->",
    "\u{2028}",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let time = Duration::from_secs(numbers.first().copied().unwrap_or(1));
    let start = numbers.get(1).copied().unwrap_or(1);
    let chosen = |parser: &&&str| {
        !PARSERS.iter().any(|known| arguments.iter().any(|argument| argument == known))
            || arguments.iter().any(|argument| argument == **parser)
    };
    panic::set_hook(Box::new(|_| {}));
    let mut findings = 0;
    for parser in PARSERS.iter().filter(chosen) {
        findings += fuzz(parser, time, start);
    }
    if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fuzz(parser: &str, time: Duration, start: u64) -> usize {
    let mut random = Random(start);
    let mut text = seed(parser).as_bytes().to_vec();
    let (mut executions, mut findings, mut slowest) = (0u64, 0, Duration::ZERO);
    let begun = Instant::now();
    while begun.elapsed() < time {
        if text.len() > LONGEST || random.below(20) == 0 {
            text = seed(parser).as_bytes().to_vec();
        }
        for _ in 0..=random.below(6) {
            mutate(&mut text, &mut random);
        }
        let shown = String::from_utf8_lossy(&text).into_owned();
        let fed = Instant::now();
        let ended = panic::catch_unwind(|| feed(parser, &shown)).unwrap_or_else(|_| Err("panicked".to_owned()));
        let took = fed.elapsed();
        slowest = slowest.max(took);
        executions += 1;
        let slow = (took > SLOW).then(|| format!("took {took:?}"));
        if let Some(finding) = ended.err().or(slow) {
            findings += 1;
            eprintln!("{parser}: {finding}\n{shown:?}\n");
        }
    }
    let rate = executions as f64 / begun.elapsed().as_secs_f64();
    println!("{parser}: {executions} texts, {rate:.0}/s, slowest {slowest:.1?}, {findings} findings");
    findings
}

fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    let end = (at + random.below(40)).min(text.len());
    let token = TOKENS[random.below(TOKENS.len())].as_bytes();
    match random.below(8) {
        0 if at < text.len() => text[at] = u8::try_from(random.below(256)).unwrap_or(0),
        1 => drop(text.drain(at..end)),
        2 => {
            let copy = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            text.splice(to..to, copy);
        }
        3 => {
            let other = seed(PARSERS[random.below(PARSERS.len())]).as_bytes();
            let from = random.below(other.len());
            let piece = &other[from..(from + random.below(200)).min(other.len())];
            text.splice(at..at, piece.iter().copied());
        }
        4 => {
            let many = 1 << random.below(9);
            text.splice(at..at, token.repeat(many));
        }
        5 => text.truncate(at.max(text.len() / 2)),
        _ => drop(text.splice(at..at, token.iter().copied())),
    }
}

/// SplitMix64: good enough to choose where to break a text, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % limit.max(1) as u64).unwrap_or(0)
    }
}
