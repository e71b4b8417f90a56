//! Feeds the parsers, the router and the rules for secrets what nobody would write: the texts of `fixtures`, changed at
//! random. Compiled into the library's tests, since none of what it reaches is public.
//!
//! `SQUAD_FUZZ=100000 cargo test --lib fuzz -- --nocapture` feeds each parser so many texts, and prints how many it fed
//! in a second and what it found; `SQUAD_SEED` begins with other texts, and `SQUAD_PARSER=command` feeds that one alone.

use std::panic;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::model::{Access, Evidence, Member, Plan, PlanKind, Problem, Slug, Team, Tier};
use crate::parse::{Files, team};
use crate::policy::{Answer, PolicyRequest, PolicyRules, Redactor, always_rules, forbidden};
use crate::route::{Request, RouteOptions, Router};
use crate::settings::{self, Origin, Settings};

/// Texts grow by mutation; longer ones begin again.
const LONGEST: usize = 64 * 1024;

/// What takes longer is shown, to be looked at.
const LONG: Duration = Duration::from_millis(50);

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

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_is_fed_keeps_the_promises() {
    let (texts, start) = (number_of("SQUAD_FUZZ", 60), number_of("SQUAD_SEED", 1));
    let only = std::env::var("SQUAD_PARSER").ok();
    let parsers = PARSERS.iter().filter(|parser| only.as_ref().is_none_or(|only| only == *parser));
    let findings: Vec<String> = parsers.flat_map(|parser| fuzz(parser, texts, start)).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n\n"));
}

fn fuzz(parser: &str, texts: u64, start: u64) -> Vec<String> {
    let mut random = Random(start);
    let mut text = seed(parser).as_bytes().to_vec();
    let (mut findings, mut slowest, mut slowest_text) = (Vec::new(), Duration::ZERO, String::new());
    // What is made once is no text's time.
    let _ = feed(parser, seed(parser));
    let begun = Instant::now();
    for _ in 0..texts {
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
        if took > slowest {
            (slowest, slowest_text) = (took, shown.clone());
        }
        findings.extend(ended.err().map(|finding| format!("{parser}: {finding}\n{shown:?}")));
    }
    let rate = texts as f64 / begun.elapsed().as_secs_f64();
    println!("{parser}: {texts} texts, {rate:.0}/s, slowest {slowest:.1?}, {} findings", findings.len());
    if slowest > LONG {
        println!("{slowest_text:?}");
    }
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

/// What there is to feed.
const PARSERS: [&str; 16] = [
    "team",
    "routing",
    "routing-json",
    "charter",
    "decisions",
    "decision",
    "skill",
    "ceremonies",
    "registry",
    "identity",
    "message",
    "secrets",
    "command",
    "path",
    "address",
    "policy",
];

/// A roster for texts that name members.
const TEAM: &str = include_str!("../../fixtures/forms/team.md");

/// A routing file that points to `work.json`.
const ROUTING: &str = include_str!("../../fixtures/forms/routing.md");

/// Put together here, so that no scanner takes it for a leak.
static SECRETS: LazyLock<String> = LazyLock::new(|| {
    let (token, key) = ("a1B2".repeat(9), "PRIVATE KEY");
    format!(
        "-----BEGIN {key}-----\n{token}\n-----END {key}-----\ntoken: ghp_{token} by ann@acme.io\nAPI_KEY=\"{token}\"\n\
         Authorization: Bearer {token}\npostgres://app:s3cr3t@db/x git@host:a/b password = kJ8#mQ2$ sk-ant-{token}\n"
    )
});

/// The team that messages are routed in.
const ROSTER: &str = include_str!("../../fixtures/routing/team.md");
const ROWS: &str = include_str!("../../fixtures/routing/routing.md");

/// The text that mutations of a parser's input begin with.
fn seed(parser: &str) -> &'static str {
    match parser {
        "team" => TEAM,
        "routing" => ROUTING,
        "routing-json" => include_str!("../../fixtures/forms/work.json"),
        "charter" => include_str!("../../fixtures/forms/charter.md"),
        "decisions" => include_str!("../../fixtures/forms/decisions.md"),
        "skill" => include_str!("../../fixtures/forms/skill.md"),
        "ceremonies" => include_str!("../../fixtures/forms/ceremonies.md"),
        "registry" => include_str!("../../fixtures/forms/registry.json"),
        "identity" => include_str!("../../fixtures/forms/now.md"),
        "message" => include_str!("../../fixtures/routing/message.md"),
        "secrets" => &SECRETS,
        "command" => COMMAND,
        "path" => "src/../infra/./Main.TF/**/[a-z]{b,c}.rs",
        "policy" => POLICY,
        "address" => "https://ann@[::ffff:0x7f.1]:8443/\u{fc}/a?b=http://127.0.0.1.:80#example.com",
        _ => include_str!("../../fixtures/forms/decision.md"),
    }
}

/// Feeds a text to a parser; an error says which promise was broken.
fn feed(parser: &str, text: &str) -> Result<(), String> {
    match parser {
        "message" => return route(text),
        "secrets" => return redact(text),
        "command" => return judge(text, Access::Shell),
        "path" => return judge(text, Access::Write),
        "address" => return judge(text, Access::Network),
        "policy" => return rules(text),
        _ => {}
    }
    let files = files(parser, text);
    let (read, problems) = team(&files);
    for problem in &problems {
        inside(&files, problem)?;
    }
    if team(&files) != (read, problems) {
        return Err("read differently the second time".to_owned());
    }
    Ok(())
}

fn files(parser: &str, text: &str) -> Files {
    let paths: &[&str] = match parser {
        "team" => &["team.md"],
        "routing" => &["routing.md"],
        "routing-json" => &["work.json"],
        "charter" => &["agents/ilse/charter.md", "roles/diver.md"],
        "decisions" => &["decisions.md", "decisions-archive.md", "decisions/inbox/note.md"],
        "skill" => &["skills/tunnels/SKILL.md"],
        "ceremonies" => &["ceremonies.md"],
        "registry" => &["casting/registry.json"],
        "identity" => &["identity/now.md", "identity/wisdom.md"],
        _ => &["decisions/2026/03/01-paint-0a1b2c3d4e5f.md"],
    };
    let mut files = Files { folder: ".squad".to_owned(), ..Files::default() };
    for (path, text) in [("team.md", TEAM), ("routing.md", ROUTING)] {
        files.texts.insert(path.to_owned(), text.to_owned());
    }
    for path in paths {
        files.texts.insert((*path).to_owned(), text.to_owned());
    }
    files
}

fn inside(files: &Files, problem: &Problem) -> Result<(), String> {
    let path = problem.file.strip_prefix(".squad/").unwrap_or(&problem.file);
    let text = files.text(path).unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
    let lines = text.lines().count().max(1);
    let known = files.texts.contains_key(path);
    if known && (1..=lines).contains(&problem.line) { Ok(()) } else { Err(format!("outside the file: {problem:?}")) }
}

static ROUTED: LazyLock<Team> = LazyLock::new(|| {
    let texts = [("team.md", ROSTER), ("routing.md", ROWS)].map(|(path, text)| (path.to_owned(), text.to_owned()));
    team(&Files { folder: ".squad".to_owned(), texts: texts.into() }).0
});

static ROUTER: LazyLock<Router<'static>> = LazyLock::new(|| Router::new(&ROUTED, &[]));

fn route(message: &str) -> Result<(), String> {
    let plan = ROUTER.plan(&Request::new(message), &RouteOptions::default());
    let starts = |member: &&Member| plan.agents.iter().chain(&plan.reviewer).any(|slug| member.slug == *slug);
    if ROUTED.startable().filter(starts).count() != plan.agents.len() + usize::from(plan.reviewer.is_some()) {
        return Err(format!("names somebody who cannot be started, or somebody twice: {plan:?}"));
    }
    // Whom a plan is about that asks first is named, too.
    let names_nobody_but_should = plan.kind == PlanKind::Agents && plan.agents.is_empty();
    let names_somebody_for_nothing = plan.kind == PlanKind::Direct && !plan.agents.is_empty();
    if names_nobody_but_should || names_somebody_for_nothing || !(0.0..=1.0).contains(&plan.confidence) {
        return Err(format!("contradicts itself: {plan:?}"));
    }
    plan.evidence.iter().try_for_each(|evidence| holds(message, evidence))?;
    let again: Plan = ROUTER.plan(&Request::new(message), &RouteOptions::default());
    if again == plan { Ok(()) } else { Err("planned differently the second time".to_owned()) }
}

fn redact(text: &str) -> Result<(), String> {
    let mut found = Vec::new();
    let clean = Redactor::default().text(text, &mut found);
    if found.is_empty() && clean != text {
        return Err("changed without a word".to_owned());
    }
    let mut again = Vec::new();
    if Redactor::default().text(&clean, &mut again) == clean && again.is_empty() {
        return Ok(());
    }
    Err(format!("not clean: {again:?} in {clean:?}"))
}

/// What shells understand and rules look into.
const COMMAND: &str = "cd /tmp && FOO='a b' sudo -u x env A=1 sh -c 'git push \"$(cat <<E\nx\nE\n)\" --force' | xargs -0 rm -rf -- ./${x:-y}/* ; \
    for d in a b; do (find . -name '*.rs' -exec rm {} +); done &>/dev/null || eval \"$X\" `ls` ; \
    git -C x up; echo a | xargs -I% env sh -c '%' | sudo python3 -u - <<'P'\nimport os\nos.system(\"ls\")\nP\n # end";

const POLICY: &str = "[policy]\ncommands.deny = [\"git push\", \"rm\"]\ncommands.ask = [\"eval\"]\ncommands.allow = [\"ls\"]\n\
    writes.only = [\"src/**\", \"@owned\"]\nwrites.deny = [\"**/*.{tf,pem}\"]\n\
    hosts.deny = [\"[::1]:*\", \"*.example.com\"]\n";

static RULES: LazyLock<PolicyRules> = LazyLock::new(|| rules_of(POLICY).0);

fn rules_of(text: &str) -> (PolicyRules, Vec<Problem>) {
    let (layer, mut problems) = settings::from_toml(text, |line| Origin::Project("config.toml".to_owned(), line));
    let (settings, more) = Settings::resolve([layer]);
    problems.extend(more);
    (PolicyRules::new(settings.policy_rules(), &ROUTED), problems)
}

/// Rules are read, and judge by, the same each time; what is wrong with them is said of a line of theirs.
fn rules(text: &str) -> Result<(), String> {
    let agent = ROUTED.members.first().map(|member| member.slug.clone()).unwrap_or_else(Slug::coordinator);
    let read = || {
        let (rules, problems) = rules_of(text);
        let requests = [
            (Access::Shell, "cd a && git push -f", None),
            (Access::Write, "src/a.tf", Some("src/a.tf")),
            (Access::Network, "https://[::1]:80/x", None),
        ];
        let answers = requests.map(|(access, detail, path)| {
            let request = PolicyRequest { agent: &agent, tier: Tier::Standard, access, tool: "t", detail, path };
            rules.answer(&request).map(|answered| (answered.answer, answered.reason()))
        });
        (answers, problems)
    };
    let (answers, problems) = read();
    let lines = text.lines().count().max(1) + 1;
    if let Some(outside) = problems.iter().find(|problem| !(1..=lines).contains(&problem.line)) {
        return Err(format!("outside the file: {outside:?}"));
    }
    if read() == (answers, problems) { Ok(()) } else { Err("judged differently the second time".to_owned()) }
}

/// A command, path or address is judged without a panic, and the same each time; what is forbidden as it is, is not forbidden less
/// with something before it.
fn judge(text: &str, access: Access) -> Result<(), String> {
    let agent = ROUTED.members.first().map(|member| member.slug.clone()).unwrap_or_else(Slug::coordinator);
    let path = (access == Access::Write).then_some(text);
    let judged = |detail: &str| {
        let request = PolicyRequest { agent: &agent, tier: Tier::Standard, access, tool: "t", detail, path };
        let answered = RULES.answer(&request).map(|answered| answered.answer);
        (answered, forbidden(detail, "/home/ann/shop").is_some())
    };
    let first = judged(text);
    if judged(text) != first {
        return Err("judged differently the second time".to_owned());
    }
    let after = judged(&format!("true && {text}"));
    let is_command = access == Access::Shell;
    if is_command && first.0 == Some(Answer::Deny) && after.0 != Some(Answer::Deny) {
        return Err(format!("denied, and behind another command {after:?}"));
    }
    if is_command && first.1 && !after.1 {
        return Err("refused in every mode, and behind another command not".to_owned());
    }
    always_rules(access, text, path, "/home/ann/shop");
    Ok(())
}

/// Evidence quotes words that the message has, and lines that the team's files have.
fn holds(message: &str, evidence: &Evidence) -> Result<(), String> {
    let of_a_file = evidence.source.rsplit_once(':').map(|(file, line)| (file, line.parse::<usize>().unwrap_or(0)));
    let (is_there, quotes) = match of_a_file {
        Some((".squad/team.md", line)) => ((1..=ROSTER.lines().count()).contains(&line), true),
        Some((".squad/routing.md", line)) => ((1..=ROWS.lines().count()).contains(&line), true),
        Some(_) => (false, false),
        None => (evidence.source == "message", false),
    };
    let mut quoted = evidence.why.split('`').skip(1).step_by(2).filter(|_| quotes);
    if is_there && evidence.weight.is_finite() && quoted.all(|word| !word.is_empty() && message.contains(word)) {
        return Ok(());
    }
    Err(format!("evidence of nothing: {evidence:?}"))
}
