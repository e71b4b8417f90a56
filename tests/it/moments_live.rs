//! What a terminal of 100 and of 60 columns shows while squad goes on: a conversation, a watch and the demo.
//!
//! `UPDATE_EXPECT=1 cargo test --test it moments` writes the files in `fixtures/goldens` anew.

use std::process::Child;
use std::time::Duration;

use rustix::termios::{Winsize, tcsetwinsize};

use crate::emulator::Emulator;
use crate::moments::{Album, Known, WIDTHS, repo};
use crate::screens::acted;
use crate::support::TestRepo;
use crate::terminal::Person;

/// A squad that goes on, and its terminal.
struct Stage {
    columns: u16,
    person: Person,
    child: Child,
}

impl Stage {
    fn begins(repo: &TestRepo, columns: u16, arguments: &[&str]) -> Self {
        let mut person = Person::sits_down();
        resize(&person, columns);
        let mut command = repo.command(env!("CARGO_BIN_EXE_squad"), &repo.root());
        command.args(arguments).env("TERM", "xterm").env("TZ", "UTC");
        let child = person.starts(command);
        Self { columns, person, child }
    }

    /// What the terminal shows once it is so.
    fn waits_until(&mut self, is_so: impl Fn(&str) -> bool) -> String {
        loop {
            let shown = Emulator::shows(&self.person.screen, self.columns.into());
            if is_so(&shown) {
                return shown;
            }
            let count = self.person.screen.len();
            self.person.reads();
            assert!(self.person.screen.len() > count, "not shown: {shown}");
        }
    }

    fn ends(&mut self) -> String {
        while self.child.try_wait().expect("a child").is_none() {
            self.person.reads();
        }
        self.person.reads();
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{}", self.person.screen);
        Emulator::shows(&self.person.screen, self.columns.into())
    }
}

fn resize(person: &Person, columns: u16) {
    tcsetwinsize(&person.terminal, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })
        .expect("a size");
}

const TALK: &str = r##"
[[turn]]
agent = "ada"
steps = [
  { say = "I settle what the endpoint answers first, so that both can work from the same words." },
  { run = "while [ ! -e ../go ]; do sleep 0.1; done; sleep 1" },
  { write = "app/health.py", text = "class Health:\n    ok = True\n" },
  { say = "It is written. 日本語。" },
  { listen = true },
]
[[turn]]
agent = "bob"
steps = [{ say = "Tested." }]
"##;

fn ends_with(shown: &str, last: &str) -> bool {
    shown.trim_end().ends_with(last)
}

#[test]
fn a_conversation() {
    for columns in WIDTHS {
        let (repo, mut album) = (repo(TALK), Album::of(columns));
        let options = ["orchestrate", "--script", "../script.toml", "--permissions", "ask"];
        let mut stage = Stage::begins(&repo, columns, &options);
        let shown = stage.waits_until(|shown| ends_with(shown, "\nsquad>"));
        album.moment(&Known::of(&repo), "# it begins", &shown);
        stage.person.types("help\r");
        stage.waits_until(|shown| shown.contains("Ctrl-C cancels the current work.\nsquad>"));
        stage.person.types("@ada adds GET /health\r");
        let is_asked = |shown: &str| shown.contains("? help\n") && ends_with(shown, "Ctrl-C stops");
        stage.waits_until(is_asked);
        stage.person.types("y");
        stage.waits_until(|shown| !shown.contains("? help") && ends_with(shown, "Ctrl-C stops"));
        stage.person.types("@bob is an empty");
        stage.waits_until(|shown| ends_with(shown, "squad> @bob is an empty"));
        repo.write("../go", "");
        let shown = stage.waits_until(is_asked);
        album.moment(&Known::of(&repo), "# a question takes the place of what was begun", &shown);
        stage.person.types("y");
        let shown =
            stage.waits_until(|shown| shown.contains("It is written.") && ends_with(shown, "squad> @bob is an empty"));
        album.moment(&Known::of(&repo), "# and gives it back", &shown);
        // Pasted: it ends with the last of its lines.
        stage.person.types(" cart\rtested?");
        stage.waits_until(|shown| ends_with(shown, "tested?"));
        stage.person.types("\r");
        stage.waits_until(|shown| shown.contains("queued as the next message"));
        stage.person.types("@ada that is all\r");
        stage.waits_until(|shown| shown.matches("completed in ").count() == 2 && ends_with(shown, "\nsquad>"));
        stage.person.types("quit\r");
        let shown = stage.ends();
        assert!(!shown.contains('●') && !shown.contains("Ctrl-C stops"), "{shown}");
        album.moment(&Known::of(&repo), "# all of it", &shown);
        album.check("conversation");
    }
}

/// The first one takes back what was typed; the second leaves.
#[test]
fn two_interrupts_at_the_prompt_leave() {
    let repo = repo(TALK);
    let mut stage = Stage::begins(&repo, 80, &["orchestrate", "--script", "../script.toml"]);
    stage.waits_until(|shown| ends_with(shown, "\nsquad>"));
    stage.person.types("@ada never mi");
    stage.waits_until(|shown| ends_with(shown, "@ada never mi"));
    stage.person.types("\u{3}");
    stage.waits_until(|shown| ends_with(shown, "@ada never mi\nsquad>"));
    stage.person.types("\u{3}");
    stage.ends();
    assert_eq!(repo.squad(&["log", "--all", "--json"]).out.matches("\"run\"").count(), 0);
}

const LISTENS: &str = r#"
[[turn]]
agent = "ada"
steps = [{ say = "I settle what the endpoint answers first, so that both can work from the same words." }, { listen = true }]
"#;

#[test]
fn a_terminal_made_narrower_keeps_nothing_stale_of_a_conversation() {
    let repo = repo(LISTENS);
    let options = ["orchestrate", "--script", "../script.toml", "--permissions", "allow"];
    let mut stage = Stage::begins(&repo, 100, &options);
    stage.waits_until(|shown| ends_with(shown, "\nsquad>"));
    stage.person.types("@ada begin\r");
    stage.waits_until(|shown| shown.contains("● ada  I settle") && ends_with(shown, "Ctrl-C stops"));
    let draft = "@ada that is all, and it is more than a narrower terminal has room for in one line";
    stage.person.types(draft);
    stage.waits_until(|shown| ends_with(shown, draft));
    let before = stage.person.screen.len();
    resize(&stage.person, 60);
    stage.person.types(".\r");
    stage.person.waits_for("completed in ");
    stage.person.waits_for_times("squad> ", 3);
    stage.person.types("quit\r");
    stage.ends();
    let (first, rest) = stage.person.screen.split_at(before);
    let left = Emulator::shows_resized((first, 100), (rest, 60));
    assert!(!left.contains('●') && !left.contains("Ctrl-C stops"), "{left}");
    assert!(left.contains("I was told: that is all"), "{left}");
}

const WATCHED: &str = r#"
[[turn]]
agent = "ada"
steps = [
  { say = "Whoever reads this page sets up a load balancer, or looks at a red light." },
  { write = "docs/health.md", text = "health\n" },
  { say = "Done." },
]
"#;

#[test]
fn a_watch() {
    for columns in WIDTHS {
        let (mut repo, mut album) = (repo(WATCHED), Album::of(columns));
        repo.write(".squad/config.toml", "[sessions]\ncore = [\"ada\", \"bob\"]\n");
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "--quiet", "--message=configuration"]);
        for (name, value) in [("SQUAD_ENGINE", "rehearsal"), ("SQUAD_REHEARSAL", "../script.toml")] {
            repo.variables.insert(name.to_owned(), value.to_owned());
        }
        let mut watch = Stage::begins(&repo, columns, &["watch"]);
        let shown = watch.waits_until(|shown| shown.contains("ada  idle") && shown.contains("bob  idle"));
        album.moment(&Known::of(&repo), "# nobody works", &shown);
        let options = ["orchestrate", "--permissions", "ask", "@ada Write a page about it"];
        let mut client = Stage::begins(&repo, 100, &options);
        client.person.is_asked("ada wants to write docs/health.md");
        let shown = watch.waits_until(|shown| shown.contains("asks: write docs/health.md"));
        album.moment(&Known::of(&repo), "# one asks", &shown);
        watch.person.types("a");
        let shown = watch.waits_until(|shown| shown.contains("(Esc leaves it open)"));
        album.moment(&Known::of(&repo), "# its question", &shown);
        // A person's time is named from a second on.
        std::thread::sleep(Duration::from_millis(1_100));
        watch.person.types("y");
        client.ends();
        watch.waits_until(|shown| shown.contains("completed in ") && shown.contains("ada  idle, completed"));
        watch.person.types("D");
        let shown = watch.waits_until(|shown| shown.contains("viewing the changes of ada"));
        album.moment(&Known::of(&repo), "# what one changed", &shown);
        watch.person.types("\u{1b}");
        watch.waits_until(|shown| !shown.contains("viewing"));
        watch.person.types("/bo");
        let shown = watch.waits_until(|shown| shown.contains("find: bo_"));
        album.moment(&Known::of(&repo), "# one is looked for", &shown);
        watch.person.types("\r");
        let shown = watch.waits_until(|shown| shown.contains(">  bob"));
        album.moment(&Known::of(&repo), "# and found", &shown);
        watch.person.types("?");
        let shown = watch.waits_until(|shown| shown.contains("choose an agent"));
        album.moment(&Known::of(&repo), "# the keys", &shown);
        watch.person.types("xq");
        let shown = watch.ends();
        album.moment(&Known::of(&repo), "# what is left", &shown);
        album.check("watch");
    }
}

/// Those who work side by side say what they do in any order; by their names here.
fn by_name(shown: &str) -> String {
    let name = |block: &str| {
        let word = block.get(2..).and_then(|rest| rest.split(' ').next()).or_else(|| block.split(' ').nth(1));
        word.filter(|word| ["backend", "tester", "docs"].contains(word)).map(str::to_owned)
    };
    let mut blocks: Vec<String> = Vec::new();
    for line in shown.lines() {
        match blocks.last_mut() {
            Some(block) if name(block).is_some() && line.starts_with("    ") => *block += &format!("{line}\n"),
            _ => blocks.push(format!("{line}\n")),
        }
    }
    blocks.chunk_by_mut(|a, b| name(a).is_some() && name(b).is_some()).for_each(|side| side.sort_by_key(|it| name(it)));
    blocks.concat()
}

#[test]
fn the_demo() {
    for columns in WIDTHS {
        let (repo, mut album) = (TestRepo::folder(), Album::of(columns));
        let shown = acted(&repo, columns, &["demo"], |_, _| ());
        assert!(shown.lines().count() <= 40 || columns < 100, "{shown}");
        let words: Vec<&str> = shown.split([' ', '\n', ':', ';']).collect();
        let ids = words.windows(2).filter(|pair| ["run", "decision"].contains(&pair[0]));
        let mut known = Known::of(&repo);
        known.ids.extend(ids.map(|pair| pair[1].to_owned()));
        let shown = by_name(&shown).replace(env!("CARGO_BIN_EXE_squad"), "squad");
        album.moment(&known, "$ squad demo", &shown);
        album.check("demo");
    }
}
