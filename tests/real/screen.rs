//! What a terminal shows while the model of the real CLI speaks.

use rustix::termios::{Winsize, tcsetwinsize};

use crate::emulator::Emulator;
use crate::support::{World, plays};
use crate::terminal::Person;

const COLUMNS: u16 = 100;
/// Pieces in which the model says its words, 0.1 s apart.
const PIECES: usize = 40;

#[test]
fn words_are_in_the_row_of_who_says_them_before_the_message_is_whole() {
    let text = (1..=PIECES).map(|number| format!("pier{number:02}")).collect::<Vec<_>>().join(" ");
    let world = World::new(|_| [plays("ada", &[&format!("stream:{PIECES} say:{text}")])]);
    let mut person = Person::sits_down();
    let size = Winsize { ws_row: 40, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person.terminal, size).expect("a size");
    let mut command = world.repo.command(env!("CARGO_BIN_EXE_squad"), &world.repo.root());
    command.args(["orchestrate", "@ada count the piers"]).env("TERM", "xterm");
    let mut child = person.starts(command);
    // How much of the text each picture of the row shows the end of.
    let mut said: Vec<usize> = Vec::new();
    let mut shown = String::new();
    while child.try_wait().expect("a child").is_none() {
        person.reads();
        shown = Emulator::shows(&person.screen, COLUMNS.into());
        let row = shown.lines().find_map(|line| line.strip_prefix("● ada "));
        let words: Vec<&str> = row.iter().flat_map(|row| row.split_whitespace()).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| word.contains("pier")).collect();
        let words = words.join(" ");
        let end = text.find(words.trim_start_matches('…')).map(|at| at + words.trim_start_matches('…').len());
        let end = end.unwrap_or_else(|| panic!("the model said no {words:?}: {shown}"));
        if end > 0 && said.last() != Some(&end) {
            said.push(end);
        }
    }
    assert!(said.is_sorted() && said.len() >= PIECES / 4, "{said:?}: {shown}");
    assert!(said[0] < text.len() / 4, "from the beginning on: {said:?}");
    assert!(!shown.contains('●') && shown.contains("pier40"), "no row is left, and the answer is: {shown}");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{shown}");
    world.settle();
}
