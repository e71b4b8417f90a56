//! A run as one page of HTML, without scripts and without anything to load. The story and the card are the terminal's.

mod timeline;

use std::fmt::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pulldown_cmark::{CodeBlockKind, CowStr, Options, Parser, Tag, TagEnd, html};

use self::timeline::Timeline;
use super::card::used;
use super::{LineStyle, PastRun, Text};
use crate::model::{EventKind, Plan, Position, RunId, Slug, printable};

/// Lines of one message or call that are shown unfolded.
const UNFOLDED: usize = 4;
/// The card is laid out for so many columns.
const COLUMNS: usize = 100;

pub(crate) struct HtmlPage {
    past: PastRun,
    head: Vec<Text>,
    timeline: Timeline,
    story: String,
    plan: String,
    decisions: String,
    agents: String,
    /// Counts the events, so that the timeline can link to their places in the story.
    events: usize,
}

impl HtmlPage {
    pub(crate) fn new(run: RunId, zone: TimeZone) -> Self {
        let (head, timeline, story, plan, decisions, agents, events) = Default::default();
        Self { past: PastRun::new(run, zone), head, timeline, story, plan, decisions, agents, events }
    }

    pub(crate) fn see(&mut self, at: Timestamp, agent: Option<&Slug>, position: Position, kind: &EventKind) {
        self.head.extend(self.past.head(at, kind));
        let lines = self.past.see(at, agent, position, kind);
        self.events += 1;
        self.timeline.see(at, agent, kind, self.events);
        self.tell(&lines);
        match kind {
            EventKind::RoutePlanned(plan) => self.plan = reasons(plan),
            EventKind::DecisionLogged { decision, .. } => {
                let title = Text::default().with(LineStyle::Strong, &format!("{}: {}", decision.id, decision.title));
                self.decisions += &paragraph(&title);
                self.decisions += &markdown(&decision.text);
            }
            EventKind::SessionCreated { model, .. } => self.agent(agent, &format!("works on {model}")),
            kind => {
                if let Some(used) = kind.end().and_then(|(_, end)| used(&end.usage)) {
                    self.agent(agent, &used);
                }
            }
        }
    }

    /// A line about an agent.
    fn agent(&mut self, agent: Option<&Slug>, text: &str) {
        let name = agent.map_or("squad", Slug::as_str);
        let line = Text::default().with(LineStyle::Strong, name).plain("  ").hanging().plain(text);
        self.agents += &paragraph(&line);
    }

    /// A line about an entry that is not understood.
    pub(crate) fn note(&mut self, text: &str) {
        self.tell(&[Text::default().with(LineStyle::Warning, text)]);
    }

    /// Adds lines to the story; the last text of them is the event's own, the ones before it were waiting.
    fn tell(&mut self, lines: &[Text]) {
        let mut blocks: Vec<Vec<String>> = Vec::new();
        for line in lines {
            match blocks.last_mut().filter(|_| line.is_continued()) {
                Some(block) => block.push(paragraph(line)),
                None => blocks.push(vec![paragraph(line)]),
            }
        }
        let last = blocks.len();
        for (number, block) in (1..).zip(blocks) {
            let id = if number == last { format!(" id=e{}", self.events) } else { String::new() };
            let text = if block.len() > UNFOLDED {
                let (first, rest) = block.split_at(1);
                let more = rest.len();
                let (first, rest) = (first.concat(), rest.concat());
                let more = format!("<i> … {more} more lines</i>");
                format!("<details{id}><summary>{first}{more}</summary>{rest}</details>\n")
            } else {
                format!("<div{id}>{}</div>\n", block.concat())
            };
            self.story += &text;
        }
    }

    /// The whole page. `diff`: what is said of each changed file, and its patch.
    pub(crate) fn finish(mut self, state: &str, diff: &[(Text, &str)]) -> String {
        let rest = self.past.rest();
        self.events += 1;
        self.tell(&rest);
        let title = self.head.first().map(Text::to_string).unwrap_or_default();
        let about = self.head.get(1).map(paragraph).unwrap_or_default();
        let card: String = self.past.end(state, COLUMNS).iter().map(paragraph).collect();
        let answer = self.past.answer().map(markdown).unwrap_or_default();
        let mut page =
            format!("{about}\n<section>{card}</section>\n<article>{answer}</article>\n{}", self.timeline.drawn());
        let patches = diff.iter().map(|(head, patch)| paragraph(head) + &colored(patch)).collect::<String>();
        for (heading, is_open, text) in [
            ("Plan and why", false, &self.plan),
            ("What happened", true, &self.story),
            ("What it changed", false, &patches),
            ("Decisions", false, &self.decisions),
            ("Models and tokens", false, &self.agents),
        ] {
            if !text.is_empty() {
                let open = if is_open { " open" } else { "" };
                page += &format!("<details{open} class=part><summary><h2>{heading}</h2></summary>\n{text}</details>\n");
            }
        }
        whole(&title, &page)
    }
}

/// A page of HTML.
fn whole(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style></head>\n<body><h1>{title}</h1>{body}</body></html>\n"
    )
}

/// Amounts side by side.
pub(crate) struct Chart {
    pub(crate) heading: &'static str,
    pub(crate) bars: Vec<Bar>,
}

pub(crate) struct Bar {
    pub(crate) name: String,
    /// The amount in words.
    pub(crate) text: String,
    pub(crate) amount: f64,
    /// From and to what it was expected to be.
    pub(crate) expected: Option<(f64, f64)>,
}

/// Charts as one page, without scripts and without anything to load.
pub(crate) fn chart_page(title: &str, about: &str, charts: &[Chart]) -> String {
    let mut body = paragraph(&Text::default().plain(about));
    for Chart { heading, bars } in charts.iter().filter(|chart| !chart.bars.is_empty()) {
        let ends = bars.iter().map(|bar| bar.expected.map_or(bar.amount, |(_, to)| to.max(bar.amount)));
        let most = ends.fold(0.0, f64::max);
        let width = |amount: f64| if most > 0.0 { (amount / most * 1000.0).round().clamp(0.0, 1000.0) } else { 0.0 };
        let _ = write!(body, "\n<h2>{}</h2>\n<div class=times>", escaped(heading));
        for Bar { name, text, amount, expected } in bars {
            let expected = expected.map(|(from, to)| {
                let (from, to) = (width(from), width(to));
                format!("<rect class=wait x={from} y=0 width={} height=20/>", (to - from).max(2.0))
            });
            let _ = write!(
                body,
                "<span>{}</span><div><svg viewBox=\"0 0 1000 20\" preserveAspectRatio=none>\
                 <rect class=bar x=0 y=0 width={} height=20/>{}</svg>{}</div>",
                escaped(name),
                width(*amount),
                expected.unwrap_or_default(),
                escaped(text)
            );
        }
        body += "</div>\n";
    }
    whole(title, &body)
}

/// Why each agent was chosen.
fn reasons(plan: &Plan) -> String {
    let line = |(agent, why, source): (&Slug, &str, &str)| {
        let line = Text::default().with(LineStyle::Strong, agent.as_str()).plain("  ").hanging().plain(why);
        paragraph(&line.with(LineStyle::Faint, &format!("  {source}")))
    };
    plan.evidence.iter().map(|found| line((&found.agent, &found.why, &found.source))).collect()
}

/// A line, which wraps as on a terminal.
fn paragraph(line: &Text) -> String {
    let mut text = format!("<p style=\"--hang:{}ch\">", line.hang());
    for (style, span) in line.spans() {
        let class = match style {
            LineStyle::Plain => {
                text += &escaped(span);
                continue;
            }
            LineStyle::Strong => "strong",
            LineStyle::Faint => "faint",
            LineStyle::Emphasis => "emphasis",
            LineStyle::Code => "code",
            LineStyle::Good => "good",
            LineStyle::Bad => "bad",
            LineStyle::Warning => "warning",
        };
        let _ = write!(text, "<b class={class}>{}</b>", escaped(span));
    }
    text + "</p>"
}

fn colored(patch: &str) -> String {
    let line = |line: &str| {
        let class = match line.as_bytes().first() {
            Some(b'+') => "good",
            Some(b'-') => "bad",
            Some(b' ') => "plain",
            _ => "faint",
        };
        format!("<b class={class}>{}</b>\n", escaped(line))
    };
    format!("<pre>{}</pre>", printable(patch).lines().map(line).collect::<String>())
}

/// Untrusted Markdown: its HTML is shown as text, nothing is loaded, and links lead only to pages. Entities may stand for
/// what cannot be seen.
fn markdown(text: &str) -> String {
    let shown = |text: CowStr<'_>| CowStr::from(printable(&text));
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let safe = parser.filter_map(|event| match event {
        pulldown_cmark::Event::Html(text)
        | pulldown_cmark::Event::InlineHtml(text)
        | pulldown_cmark::Event::Text(text) => Some(pulldown_cmark::Event::Text(shown(text))),
        pulldown_cmark::Event::Code(text) => Some(pulldown_cmark::Event::Code(shown(text))),
        pulldown_cmark::Event::Start(Tag::Image { .. }) | pulldown_cmark::Event::End(TagEnd::Image) => None,
        pulldown_cmark::Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let is_page = ["https://", "http://"].iter().any(|scheme| dest_url.starts_with(scheme));
            let dest_url = if is_page { shown(dest_url) } else { CowStr::Borrowed("#") };
            let (title, id) = (shown(title), shown(id));
            Some(pulldown_cmark::Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        // The language of a block of code is an attribute.
        pulldown_cmark::Event::Start(Tag::CodeBlock(_)) => {
            Some(pulldown_cmark::Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)))
        }
        event => Some(event),
    });
    let mut page = String::new();
    html::push_html(&mut page, safe);
    page
}

/// Text for HTML. What cannot be seen is named.
fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = include_str!("html/page.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Access, End, Outcome};

    const EVIL: &str = "</script></title><img src=x onerror=alert(1)>\"'&\u{202e}\u{1b}[2J\u{0}";

    fn page(kinds: &[(i64, &str, EventKind)]) -> String {
        let mut page = HtmlPage::new(RunId::new("20260105-090000-000001"), TimeZone::UTC);
        for (second, agent, kind) in kinds {
            let at = Timestamp::from_second(*second).expect("a time");
            page.see(at, Slug::fold(agent).as_ref(), Position::new(1, 1), kind);
        }
        page.finish("unknown", &[(Text::default().plain(EVIL), EVIL)])
    }

    /// The tags and attributes of a page, apart from squad's own.
    #[test]
    fn nothing_in_a_run_becomes_markup() {
        let evil = EVIL.to_owned();
        let called = EventKind::ToolCompleted {
            call: String::new(),
            tool: "shell".to_owned(),
            ok: false,
            exit_code: Some(1),
            seconds: 0.1,
            detail: evil.clone(),
            result: evil.clone(),
            wrote: None,
        };
        let end = End { text: evil.clone(), reason: evil.clone(), ..End::default() };
        let answer = format!(
            "{EVIL} &#x202e; &#27; `&#x1b;`\n\n[x](https://x.example/ \"&#x202e;\")\n\n[a](javascript:alert(1)) [b](https://x.example/) ![c](https://x.example/c.png)\n"
        );
        let page = page(&[
            (0, "ada", EventKind::Message { text: evil.clone() }),
            (1, "ada", called),
            (2, "ada", EventKind::MemoryLogged { text: evil, share: None }),
            (3, "ada", EventKind::of_end(Outcome::Failed, end)),
            (4, "", EventKind::Answer { text: answer }),
        ]);
        for bad in ["<img", "<script", "javascript:", "c.png", "\u{202e}", "\u{1b}", "\u{0}"] {
            assert!(!page.contains(bad), "{bad:?}: {page}");
        }
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && page.contains("[U+202E]"), "{page}");
        assert!(page.contains("<a href=\"https://x.example/\">b</a>"), "{page}");
    }

    #[test]
    fn calls_are_linked_to_their_place_and_a_wait_is_drawn() {
        let asked =
            EventKind::PermissionAsked { tool: "write".to_owned(), access: Access::Write, detail: "a.txt".to_owned() };
        let answered = EventKind::PermissionAnswered {
            tool: "write".to_owned(),
            detail: "a.txt".to_owned(),
            allowed: true,
            rule: None,
            reason: None,
        };
        let wrote = EventKind::ToolCompleted {
            call: String::new(),
            tool: "write".to_owned(),
            ok: true,
            exit_code: None,
            seconds: 0.1,
            detail: "a.txt".to_owned(),
            result: String::new(),
            wrote: None,
        };
        let lines = "1\n2\n3\n4\n5".to_owned();
        let page = page(&[
            (0, "ada", EventKind::Message { text: lines }),
            (10, "ada", asked),
            (60, "ada", answered),
            (75, "ada", wrote),
            (100, "ada", EventKind::of_end(Outcome::Completed, End::default())),
        ]);
        assert!(page.contains("<a href=#e4><rect class=write x=750"), "{page}");
        assert!(page.contains("<div id=e4><p style=\"--hang:"), "{page}");
        assert!(page.contains("<rect class=wait x=100 y=0 width=500"), "{page}");
        assert!(page.contains("<details id=e2><summary><p") && page.contains("4 more lines"), "{page}");
    }
}
