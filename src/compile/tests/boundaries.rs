//! What the hash covers, and selections that fit exactly.

use super::*;

/// The hash of the first agent's session.
fn hash_of(team: &Team, settings: &Settings, tier: Tier) -> String {
    compiled(team, settings, tier).compiled_hash
}

fn charter_with(change: impl Fn(&mut Charter)) -> Team {
    let mut team = team();
    team.charters.values_mut().for_each(change);
    team
}

/// Each change that requires a new session gives another hash.
#[test]
fn the_hash_covers_everything_fixed() {
    let plain = Settings::default();
    let (mut threshold, mut finite) = (Settings::default(), Settings::default());
    threshold.sessions.compaction_threshold = 0.7;
    finite.sessions.infinite = false;
    let tools = |tools: &[&str]| {
        charter_with(|charter| charter.tools = Some(tools.iter().map(|tool| (*tool).to_owned()).collect()))
    };
    let colleague = {
        let mut team = team();
        team.members.push(member("Cy"));
        team
    };
    let sessions = [
        ("as it is", hash_of(&team(), &plain, Tier::Standard)),
        ("charter", hash_of(&charter_with(|charter| charter.text.push('x')), &plain, Tier::Standard)),
        ("model", hash_of(&charter_with(|charter| charter.model = Some("m-2".to_owned())), &plain, Tier::Standard)),
        ("one tool", hash_of(&tools(&["view"]), &plain, Tier::Standard)),
        ("other tools", hash_of(&tools(&["view", "edit"]), &plain, Tier::Standard)),
        ("no tool", hash_of(&tools(&[]), &plain, Tier::Standard)),
        (
            "a tool denied",
            hash_of(&charter_with(|charter| charter.denied_tools = vec!["shell".to_owned()]), &plain, Tier::Standard),
        ),
        ("lightweight", hash_of(&team(), &plain, Tier::Lightweight)),
        ("full", hash_of(&team(), &plain, Tier::Full)),
        ("a colleague", hash_of(&colleague, &plain, Tier::Standard)),
        ("compaction", hash_of(&team(), &threshold, Tier::Standard)),
        ("no compaction", hash_of(&team(), &finite, Tier::Standard)),
    ];
    for (at, (name, hash)) in sessions.iter().enumerate() {
        for (other, same) in &sessions[..at] {
            assert_ne!(hash, same, "{name} and {other}");
        }
    }
}

/// Changes that reach a session with its next turn do not change the hash.
#[test]
fn the_hash_does_not_cover_records_or_task() {
    let plain = hash_of(&team(), &Settings::default(), Tier::Standard);
    let changes: [fn(&mut Team); 5] = [
        |team| team.decisions.clear(),
        |team| team.decisions.insert(0, decision("d9", "more")),
        |team| drop(team.histories.insert(team.members[0].slug.clone(), "- learned\n".to_owned())),
        |team| team.skills.push(skill("baking", "Bread.")),
        |team| team.notes.push(TeamNote { path: "now.md".to_owned(), is_current: true, text: "Now.".to_owned() }),
    ];
    for change in changes {
        let mut other = team();
        change(&mut other);
        assert_eq!(hash_of(&other, &Settings::default(), Tier::Standard), plain);
    }
    let team = team();
    let learnings = Learnings::from([(team.members[0].slug.clone(), vec![learning("learned")])]);
    let task = with(&team, &learnings, &Settings::default(), "Do it", |compiler| {
        compiler.agent(&team.members[0], Tier::Standard).spec.compiled_hash
    });
    assert_eq!(task, plain);
}

/// The line that counts omissions takes space as well. Tested sizes include exact fits and one step more.
#[test]
fn decisions_stay_within_their_budget_at_every_length() {
    for tier in [Tier::Standard, Tier::Full] {
        let mut fullest = usize::MAX;
        for length in 1..=120 {
            let mut team = team();
            team.decisions = (0..60)
                .map(|number| decision(&format!("d{number}"), &format!("login {}", "x".repeat(150 + length))))
                .collect();
            let (context, receipt) = told(&team, "login", tier);
            assert!(receipt.tokens.decisions <= receipt.budget.decisions, "{length}: {:?}", receipt.tokens);
            assert!(context.contains("more decisions in force not shown here"));
            fullest = fullest.min(receipt.budget.decisions - receipt.tokens.decisions);
        }
        // Without exact fits the test would prove nothing.
        assert!(fullest < 12, "{fullest} tokens were free at least");
    }
}

/// However long they are: the longer, the less is told of each.
#[test]
fn twenty_decisions_are_included_for_any_task() {
    for (count, offered, words) in
        [(19, 19, 1), (20, 20, 1), (21, 20, 1), (40, 20, 1), (20, 20, 100), (40, 20, 100), (40, 20, 2_000)]
    {
        let mut team = team();
        team.decisions = (0..count).map(|number| decision(&format!("d{number}"), &"Short. ".repeat(words))).collect();
        let (context, receipt) = told(&team, "", Tier::Standard);
        let shown = receipt.inputs.iter().filter(|input| input.kind == InputKind::Decision && input.included).count();
        assert_eq!(shown, offered, "{count}");
        assert_eq!(context.contains("not shown here"), count > offered, "{count}");
        // The newest come first in the list, and they are the ones included.
        assert!(context.contains("Title d0") && context.contains(&format!("Title d{}", offered - 1)), "{count}");
        assert!(!context.contains(&format!("Title d{offered}\n")), "{count}");
        assert!(words > 1 || context.contains("> Short."), "{count}: {context}");
    }
}

#[test]
fn a_lightweight_session_is_told_no_records_at_all() {
    let mut team = team();
    team.decisions = vec![decision("d1", "About the login.")];
    team.histories.insert(team.members[0].slug.clone(), "- The login is slow.\n".to_owned());
    let (context, receipt) = told(&team, "Fix the login", Tier::Lightweight);
    assert!(!context.contains("login"), "{context}");
    assert_eq!((receipt.tokens.decisions, receipt.tokens.history, receipt.budget.decisions), (0, 0, 0));
}

#[test]
fn full_sessions_compact_a_tenth_earlier() {
    for (threshold, standard, full) in [(0.80, 0.80, 0.70), (0.50, 0.50, 0.40), (0.15, 0.15, 0.10)] {
        let mut settings = Settings::default();
        settings.sessions.compaction_threshold = threshold;
        let of = |tier| compiled(&team(), &settings, tier).compaction_threshold.expect("it is endless");
        assert!((of(Tier::Standard) - standard).abs() < 1e-9 && (of(Tier::Full) - full).abs() < 1e-9, "{threshold}");
    }
}

/// A decision that has ended is never included; a proposed one is.
#[test]
fn only_decisions_in_force_are_included() {
    use crate::model::LegacyStatus::{Proposed, Rejected, Superseded};
    for (status, is_told) in [(None, true), (Some(Proposed), true), (Some(Rejected), false), (Some(Superseded), false)]
    {
        let mut team = team();
        team.decisions = vec![Decision { status, ..decision("d1", "Text.") }, decision("d2", "Text.")];
        assert_eq!(told(&team, "", Tier::Standard).0.contains("Title d1"), is_told, "{status:?}");
    }
}
