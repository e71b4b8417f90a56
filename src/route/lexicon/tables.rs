//! The compiled table, made of those that people write.
//!
//! A line for each area, and then one for each term, in the order of their numbers; cells are parted by tabs:
//!
//! ```text
//! = testing kind
//! deploy    2!A#q    14 15:!A
//! ```
//!
//! The term; how much it says (`0` nothing, `1` little, `2` something) with its hints; and for each term of several
//! words that begins with it the numbers of the others, with its hints. A hint is an area's place, counted from `!`, and
//! a letter for whom it is taken from (`a` all, `r` roles, `q` requests), a capital where it is strong.

use super::*;
use crate::route::terms::{Place, each_term};

const AREAS: &str = include_str!("../tables/areas.txt");
const COMMON: &str = include_str!("../tables/common.txt");

#[derive(Default)]
struct Tables {
    areas: Vec<Area>,
    ids: HashMap<String, TermId, FixedState>,
    /// By number.
    terms: Vec<Term>,
}

#[derive(Default)]
struct Term {
    text: String,
    says: Option<f64>,
    hints: Vec<Hint>,
    phrases: Vec<(Vec<TermId>, Vec<Hint>)>,
}

impl Tables {
    fn read_common(&mut self) {
        let mut says = STOP;
        for line in COMMON.lines().filter(|line| !line.starts_with('#')) {
            match line {
                "[stop]" => says = STOP,
                "[common]" => says = SAYS_LITTLE,
                words => {
                    for (term, _) in self.take_terms(words) {
                        self.terms[term as usize].says.get_or_insert(says);
                    }
                }
            }
        }
    }

    fn read_areas(&mut self) {
        let mut area = 0;
        for line in AREAS.lines().filter(|line| !line.starts_with('#')) {
            if let Some(header) = line.strip_prefix("= ") {
                let (name, kind) = header.split_once(' ').unwrap_or((header, ""));
                area = AreaId::try_from(self.areas.len()).unwrap_or(AreaId::MAX);
                self.areas.push(Area { name, kind: AreaKind::of(kind) });
            } else if let Some((strength, words)) = line.split_once(": ") {
                let build = self.areas.last().is_some_and(|area| area.name == "implementation");
                let weight = if strength == "weak" || (strength == "asks" && build) { WEAK } else { STRONG };
                let of = match strength {
                    "role" => Of::Roles,
                    "asks" => Of::Requests,
                    _ => Of::All,
                };
                let hint = Hint { area, weight, of };
                // A comma parts two terms of the table; each may be several words.
                let mut words_left = &self.take_terms(words)[..];
                let mut end = 0;
                for part in words.split(',') {
                    end += part.len() + 1;
                    let count = words_left.iter().take_while(|(_, at)| *at < end).count();
                    let (term, rest) = words_left.split_at(count);
                    self.hint(term, hint);
                    words_left = rest;
                }
            }
        }
    }

    /// A term of the tables speaks of an area.
    fn hint(&mut self, terms: &[(TermId, usize)], hint: Hint) {
        let Some(((first, _), rest)) = terms.split_first() else { return };
        let is_rest = |(known, _): &(Vec<TermId>, _)| known.iter().eq(rest.iter().map(|(term, _)| term));
        let entry = &mut self.terms[*first as usize];
        let hints = if rest.is_empty() {
            &mut entry.hints
        } else {
            let place = entry.phrases.iter().position(is_rest).unwrap_or(entry.phrases.len());
            if place == entry.phrases.len() {
                let rest = rest.iter().map(|(term, _)| *term).collect();
                entry.phrases.push((rest, Vec::new()));
            }
            &mut entry.phrases[place].1
        };
        // The first that is said of a term and an area stands: strong before weak.
        if !hints.iter().any(|known| known.area == hint.area && known.of == hint.of) {
            hints.push(hint);
        }
    }

    /// The terms of a line, with where they begin.
    fn take_terms(&mut self, text: &str) -> Vec<(TermId, usize)> {
        let mut terms = Vec::with_capacity(text.len() / 6);
        // No table of files yet: what the tables say of files is not said of them.
        each_term(&Lexicon::default(), text, &mut |term, range, place| {
            if place == Place::Word && !term.is_empty() {
                let known = self.ids.get(term).copied();
                let id = known.unwrap_or_else(|| {
                    let next = TermId::try_from(self.terms.len()).expect("a number");
                    self.ids.insert(term.to_owned(), next);
                    self.terms.push(Term { text: term.to_owned(), ..Term::default() });
                    next
                });
                terms.push((id, range.start));
            }
        });
        terms
    }

    /// A word that says nothing in one language (`die`, `dos`) says no area for sure in another.
    fn doubt_stop_words(&mut self) {
        for term in self.terms.iter_mut().filter(|term| term.says == Some(STOP)) {
            term.hints.retain(|hint| hint.weight != STRONG);
        }
    }

    fn compiled(&self) -> String {
        let mut text = String::from(
            "# Made of areas.txt and common.txt by `UPDATE_EXPECT=1 cargo test the_tables_are_compiled`.\n",
        );
        for Area { name, kind } in &self.areas {
            text.push_str(&format!("= {name} {}\n", if *kind == AreaKind::Kind { "kind" } else { "topic" }));
        }
        for term in &self.terms {
            let says = match term.says {
                Some(STOP) => '0',
                Some(SAYS_LITTLE) => '1',
                _ => '2',
            };
            text.push_str(&format!("{}\t{says}{}", term.text, encoded(&term.hints)));
            for (rest, hints) in &term.phrases {
                let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
                text.push_str(&format!("\t{}:{}", rest.join(" "), encoded(hints)));
            }
            text.push('\n');
        }
        text
    }
}

fn encoded(hints: &[Hint]) -> String {
    let letter = |hint: &Hint| {
        let (_, letter) = Hint::LETTERS.into_iter().find(|(of, _)| *of == hint.of).expect("each has a letter");
        if hint.weight == STRONG { letter.to_ascii_uppercase() } else { letter }
    };
    hints.iter().flat_map(|hint| [hint.area + Hint::FIRST_AREA, letter(hint)]).map(char::from).collect()
}

#[test]
fn the_tables_are_compiled() {
    let mut tables = Tables::default();
    tables.read_common();
    tables.read_areas();
    tables.doubt_stop_words();
    expect_test::expect_file!["../tables/compiled.txt"].assert_eq(&tables.compiled());
}
