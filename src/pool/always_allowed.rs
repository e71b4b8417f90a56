//! What a person has allowed with "always": in this run, for one agent or for all, or in an earlier one.

use std::collections::BTreeSet;
use std::future::pending;

use tokio::sync::watch;

use crate::model::{Slug, list};
use crate::policy::AlwaysRule;

pub(super) type Rules = BTreeSet<AlwaysRule>;

pub(crate) struct AlwaysAllowed {
    here: watch::Sender<BTreeSet<(Option<Slug>, AlwaysRule)>>,
    /// In an earlier run, in the words in which it was shown.
    kept: BTreeSet<String>,
}

impl Default for AlwaysAllowed {
    fn default() -> Self {
        Self::new(BTreeSet::new())
    }
}

impl AlwaysAllowed {
    pub(crate) fn new(kept: BTreeSet<String>) -> Self {
        Self { here: watch::Sender::new(BTreeSet::new()), kept }
    }

    pub(super) fn add(&self, agent: Option<&Slug>, rules: &Rules) {
        self.here.send_modify(|allowed| allowed.extend(rules.iter().map(|rule| (agent.cloned(), rule.clone()))));
    }

    /// What allows all of a request.
    pub(super) fn covering(&self, agent: &Slug, rules: &Rules) -> Option<String> {
        let allowed = self.here.borrow();
        let is_of = |whom: Option<&Slug>, rule: &AlwaysRule| {
            allowed.contains(&(whom.cloned(), rule.clone())) || self.kept.contains(&rule.to_string())
        };
        if rules.iter().all(|rule| self.kept.contains(&rule.to_string())) {
            return Some(format!("kept: {}", list(rules)));
        }
        if rules.iter().all(|rule| is_of(None, rule)) {
            return Some(named(None, rules));
        }
        rules.iter().all(|rule| is_of(None, rule) || is_of(Some(agent), rule)).then(|| named(Some(agent), rules))
    }

    /// Waits until an answer to another question allows this too.
    pub(super) async fn covers(&self, agent: &Slug, rules: Option<&Rules>) -> String {
        let Some(rules) = rules else { return pending().await };
        let mut changes = self.here.subscribe();
        loop {
            if let Some(by) = self.covering(agent, rules) {
                return by;
            }
            if changes.changed().await.is_err() {
                return pending().await;
            }
        }
    }
}

/// `always for ada: cargo test`
pub(super) fn named(agent: Option<&Slug>, rules: &Rules) -> String {
    let whom = agent.map_or_else(|| "in this run".to_owned(), |agent| format!("for {agent}"));
    format!("always {whom}: {}", list(rules))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of two commands × to whom each of them was allowed.
    #[test]
    fn what_was_allowed_to_the_agent_and_to_all_adds_up() {
        let slug = |name: &str| Slug::fold(name).expect("a name");
        let rule = |word: &str| AlwaysRule::Command(vec![word.to_owned()], BTreeSet::new());
        let both = BTreeSet::from([rule("cargo"), rule("make")]);
        for (first, second, by) in [
            ("", "run", None),
            ("bob", "run", None),
            ("bob", "ada", None),
            ("run", "kept", Some("always in this run: cargo and make")),
            ("run", "run", Some("always in this run: cargo and make")),
            ("run", "ada", Some("always for ada: cargo and make")),
            ("ada", "run", Some("always for ada: cargo and make")),
            ("ada", "kept", Some("always for ada: cargo and make")),
            ("ada", "ada", Some("always for ada: cargo and make")),
            ("kept", "bob", None),
            ("kept", "kept", Some("kept: cargo and make")),
        ] {
            let words = [(first, "cargo"), (second, "make")];
            let kept = words.iter().filter(|(whom, _)| *whom == "kept").map(|(_, word)| (*word).to_owned());
            let allowed = AlwaysAllowed::new(kept.collect());
            for (whom, word) in words {
                match whom {
                    "" | "kept" => {}
                    "run" => allowed.add(None, &BTreeSet::from([rule(word)])),
                    agent => allowed.add(Some(&slug(agent)), &BTreeSet::from([rule(word)])),
                }
            }
            assert_eq!(allowed.covering(&slug("ada"), &both).as_deref(), by, "{first} and {second}");
        }
    }
}
