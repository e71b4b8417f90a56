//! The disk steps of an append: recorded, and made to fail one by one.

use std::{
    cell::{Cell, RefCell},
    io,
};

use super::*;
use crate::git::disk::Step;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    static ORDER: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The steps of this thread since recording started.
#[derive(Default)]
struct Watch {
    steps: Vec<Step>,
    fault: Option<Fault>,
}

/// Makes the step with this number fail: it is not done, half done, or done but reported as failed.
#[derive(Clone, Copy)]
struct Fault {
    at: usize,
    manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    NotDone,
    Halfway,
    Done,
    /// Neither this step nor any later one is done.
    Dead,
}

/// Called for each step instead of doing it at once.
pub(in crate::git) fn watched<T>(step: Step, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let manner = WATCH.with_borrow_mut(|watch| {
        let watch = watch.as_mut()?;
        watch.steps.push(step.clone());
        let is_now = |fault: &Fault| match fault.manner {
            Manner::Dead => fault.at < watch.steps.len(),
            _ => fault.at + 1 == watch.steps.len(),
        };
        watch.fault.filter(is_now).map(|fault| fault.manner)
    });
    let failure = || io::Error::other("injected");
    match (manner, &step) {
        (None, _) => act(),
        (Some(Manner::Done), _) => act().and_then(|_| Err(failure())),
        (Some(Manner::Halfway), Step::Write(path, bytes)) => {
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            Err(failure())
        }
        (Some(_), _) => Err(failure()),
    }
}

/// The file system behaviour that a test pretends, if any.
pub(in crate::git) fn pretended_order() -> Option<bool> {
    ORDER.get()
}

pub(super) fn with_order<T>(keeps_order: bool, act: impl FnOnce() -> T) -> T {
    ORDER.set(Some(keeps_order));
    let answer = act();
    ORDER.set(None);
    answer
}

/// Records the steps of an action.
pub(super) fn recorded<T>(act: impl FnOnce() -> T) -> (T, Vec<Step>) {
    WATCH.set(Some(Watch::default()));
    let answer = act();
    let watch = WATCH.take().unwrap();
    (answer, watch.steps)
}

fn with_fault<T>(fault: Fault, act: impl FnOnce() -> T) -> (T, bool) {
    WATCH.set(Some(Watch { steps: Vec::new(), fault: Some(fault) }));
    let answer = act();
    let watch = WATCH.take().unwrap();
    (answer, watch.steps.len() > fault.at)
}

/// Runs an action that is killed at this step.
pub(super) fn dying<T>(at: usize, act: impl FnOnce() -> T) -> T {
    with_fault(Fault { at, manner: Manner::Dead }, act).0
}

/// Asserts that the next writer can continue, and that everything acknowledged is there.
pub(super) fn assert_goes_on(world: &World, acknowledged: &[&str], what: &dyn std::fmt::Display) {
    let sound = world.try_git(&["fsck", "--full", "--strict"]);
    assert!(sound.status.success(), "{what}: {}", String::from_utf8_lossy(&sound.stderr));
    let next = "log/2026/09/09/next.md";
    let repository = world.repository();
    repository.ledger().append(&[entry(next, "next")], "next", &ada(), noon()).unwrap_or_else(|error| {
        panic!("{what}: {error}");
    });
    let snapshot = repository.ledger().snapshot().unwrap().unwrap();
    for path in acknowledged.iter().chain([&next]) {
        let text = snapshot.find(path).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(text.is_some_and(|text| text.ends_with(b"t")), "{what}: {path} is lost");
    }
    for left in ["refs/squad/log.lock", "squad/ledger.ref"] {
        assert!(!world.root().join(".git").join(left).exists(), "{what}: {left}");
    }
    packs::assert_tidy(world, what);
}

#[test]
fn a_fault_at_any_step_loses_nothing_and_stops_nobody() {
    const PATHS: [&str; 2] = ["log/2026/03/04/a.md", "log/2026/03/05/b.md"];
    const WAITING: &str = "log/2026/03/05/waiting.md";
    // The first entry of a ledger, and a later one together with another writer's queued entry; with and without folder
    // flushes.
    for (held, keeps_order) in [(0, true), (1, true), (1, false)] {
        let template = World::new();
        PATHS[..held].iter().for_each(|path| template.append(path, "text"));
        if held > 0 {
            queue::leave_waiting(&template, WAITING);
        }
        let append =
            |world: &World| world.repository().ledger().append(&[entry(PATHS[held], "text")], "entry", &ada(), noon());
        let ((), steps) = recorded(|| with_order(keeps_order, || append(&template.copied()).unwrap()));
        assert!(steps.len() >= 20, "{}", steps.len());
        for (at, step) in steps.iter().enumerate() {
            for manner in manners(step) {
                let world = template.copied();
                let (answer, is_hit) = with_order(keeps_order, || with_fault(Fault { at, manner }, || append(&world)));
                let said = answer.map_err(|error| error.to_string());
                let what = format!("{manner:?} at {at} after {held}: {step:?}: {said:?}");
                assert!(is_hit && said.as_ref().err().is_none_or(|text| text.contains("injected")), "{what}");
                let mut acknowledged = PATHS[..held].to_vec();
                acknowledged.extend(said.is_ok().then_some(PATHS[held]));
                let is_told = queue::kinds(&world) == ["done"];
                assert!(held > 0 || !is_told, "{what}");
                acknowledged.extend(is_told.then_some(WAITING));
                assert_goes_on(&world, &acknowledged, &what);
            }
        }
    }
}

/// Steps of git itself are not recorded, but those of the resulting pack and ref are.
#[test]
fn a_fault_at_any_step_of_a_rescue_or_a_landing_leaves_a_sound_repository() {
    let rescue = |world: &World| {
        let saved = world.repository().rescue(|_| None, |_, _| "rescue".to_owned(), &ada(), noon());
        saved.map(|_| ()).map_err(|error| error.to_string())
    };
    let land = |world: &World| {
        let landing = world.repository().land(&change(&[(".squad/a.md", "a\n")]), Some(&ada()), noon());
        landing.map(|_| ()).map_err(|error| error.to_string())
    };
    type Write<'a> = &'a dyn Fn(&World) -> Result<(), String>;
    let writers: [(&str, Write<'_>); 2] = [("rescue", &rescue), ("landing", &land)];
    let template = World::new();
    template.append("log/2026/03/04/a.md", "text");
    template.write("untracked.txt", "untracked");
    for (name, write) in writers {
        let (answer, steps) = recorded(|| write(&template.copied()));
        answer.unwrap();
        assert!(steps.len() > 7, "{name}: {steps:?}");
        for (at, step) in steps.iter().enumerate() {
            let manner = manners(step)[at % 2];
            let world = template.copied();
            let (answer, is_hit) = with_fault(Fault { at, manner }, || write(&world));
            let what = format!("{name}, {manner:?} at {at}: {step:?}: {answer:?}");
            assert!(is_hit && answer.as_ref().err().is_none_or(|text| text.contains("injected")), "{what}");
            write(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_goes_on(&world, &["log/2026/03/04/a.md"], &what);
            let reference = if name == "rescue" { "refs/squad/rescue/" } else { "refs/heads/main" };
            assert!(!world.git(&["for-each-ref", reference]).is_empty(), "{what}");
        }
    }
}

fn manners(step: &Step) -> Vec<Manner> {
    match step {
        Step::Write(..) => vec![Manner::NotDone, Manner::Halfway],
        _ => vec![Manner::NotDone, Manner::Done],
    }
}
