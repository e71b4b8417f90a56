//! A work tree without files: each path has a version, and a snapshot is a copy of them all.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::model::{ChangeClass, ChangeEvidence};

fn slug(name: &str) -> Slug {
    Slug::fold(name).expect("a slug")
}

/// The files that all runs see, and their announcements.
#[derive(Default)]
struct World {
    files: Mutex<BTreeMap<String, u64>>,
    versions: AtomicU64,
    /// Each with the run it is of.
    announced: Mutex<Vec<(usize, Announced)>>,
}

#[derive(Clone)]
enum Announced {
    Begin(Slug),
    End(Slug),
    Write(Slug, String),
}

impl World {
    fn edit(&self, path: &str) {
        let version = self.versions.fetch_add(1, Ordering::Relaxed);
        self.files.lock().insert(path.to_owned(), version);
    }
}

/// One run's view.
struct Source {
    world: Arc<World>,
    run: usize,
    taken: Mutex<Vec<BTreeMap<String, u64>>>,
    comparisons: AtomicU64,
    /// How long a snapshot takes.
    delay: std::time::Duration,
    read: Mutex<(usize, BTreeSet<Slug>)>,
    fails: AtomicBool,
}

impl Source {
    fn new(world: &Arc<World>, run: usize) -> Arc<Self> {
        Self::slow(world, run, std::time::Duration::ZERO)
    }

    fn slow(world: &Arc<World>, run: usize, delay: std::time::Duration) -> Arc<Self> {
        let (world, taken, comparisons) = (Arc::clone(world), Mutex::default(), AtomicU64::default());
        Arc::new(Self { world, run, taken, comparisons, delay, read: Mutex::default(), fails: AtomicBool::new(false) })
    }

    fn files(&self, snapshot: &WorkTreeSnapshot) -> BTreeMap<String, u64> {
        let number = usize::from_str_radix(&snapshot.commit()[..8], 16).expect("a number");
        self.taken.lock()[number].clone()
    }
}

impl RunRepository for Source {
    fn take(&self, _previous: Option<&WorkTreeSnapshot>) -> Result<WorkTreeSnapshot, String> {
        std::thread::sleep(self.delay);
        if self.fails.load(Ordering::Relaxed) {
            return Err("no disk".to_owned());
        }
        let mut taken = self.taken.lock();
        taken.push(self.world.files.lock().clone());
        Ok(WorkTreeSnapshot::sample(u32::try_from(taken.len() - 1).expect("few snapshots")))
    }

    fn changed(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot) -> Result<Vec<Change>, String> {
        self.comparisons.fetch_add(1, Ordering::Relaxed);
        let (from, to) = (self.files(from), self.files(to));
        let paths: BTreeSet<&String> =
            from.keys().chain(to.keys()).filter(|path| from.get(*path) != to.get(*path)).collect();
        let change =
            |path: &String| Change { path: path.clone(), added: Some(1), removed: Some(0), ..Change::default() };
        Ok(paths.into_iter().map(change).collect())
    }

    fn git_changes(&self, _from: &WorkTreeSnapshot, _to: &WorkTreeSnapshot) -> Result<GitChanges, String> {
        Ok(GitChanges::default())
    }

    fn uncommitted(&self, _: &WorkTreeSnapshot, _: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
        Ok(BTreeSet::new())
    }

    fn commit(&self, _: &Slug, _: &WorkTreeSnapshot, _: &[String], _: &str) -> Result<Landing, String> {
        Err("it has no repository".to_owned())
    }

    fn fingerprint(&self, path: &str) -> Option<blake3::Hash> {
        self.world.files.lock().get(path).map(|version| blake3::hash(&version.to_le_bytes()))
    }

    fn diff(&self, from: &WorkTreeSnapshot, to: &WorkTreeSnapshot, _paths: &[String]) -> Result<String, String> {
        let number = |snapshot: &WorkTreeSnapshot| snapshot.commit()[..8].trim_start_matches('0').to_owned();
        Ok(format!("{}..{}", number(from), number(to)))
    }

    fn contents(&self, _: &WorkTreeSnapshot, _: &[String]) -> Result<BTreeMap<String, Content>, String> {
        Ok(BTreeMap::new())
    }

    fn announce(&self, action: Action<'_>) {
        let action = match action {
            Action::Begin(agent) => Announced::Begin(agent.clone()),
            Action::End(agent) => Announced::End(agent.clone()),
            Action::Write { agent, path, .. } => Announced::Write(agent.clone(), path.to_owned()),
        };
        self.world.announced.lock().push((self.run, action));
    }

    fn others(&self) -> (OtherRuns, OtherRuns) {
        let announced = self.world.announced.lock().clone();
        let mut read = self.read.lock();
        let (place, running) = &mut *read;
        let mut since = OtherRuns { commands: running.clone(), ..OtherRuns::default() };
        for (_, action) in announced[*place..].iter().filter(|(run, _)| *run != self.run) {
            match action.clone() {
                Announced::Begin(agent) => {
                    since.commands.insert(agent.clone());
                    running.insert(agent);
                }
                Announced::End(agent) => drop(running.remove(&agent)),
                Announced::Write(agent, path) => drop(since.named.entry(path).or_default().insert(agent)),
            }
        }
        *place = announced.len();
        (since, OtherRuns { commands: running.clone(), ..OtherRuns::default() })
    }
}

fn tree(world: &Arc<World>, run: usize) -> Arc<WorkTree> {
    let tree = WorkTree::new(Source::new(world, run), false, String::new(), Reports::channel().0);
    tree.begin();
    tree
}

/// Lets everything that is due happen.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

fn shown(changes: &[Change]) -> Vec<String> {
    let shown = |change: &Change| {
        let by: Vec<&str> = change.by.iter().map(Slug::as_str).collect();
        let how = match change.how {
            Some(ChangeEvidence::Named) => " named",
            Some(ChangeEvidence::Command) => " command",
            None => "",
        };
        format!("{} {} {}{how}", change.path, change.class, by.join("+")).replace("  ", " ").trim_end().to_owned()
    };
    changes.iter().map(shown).collect()
}

async fn write(tree: &Arc<WorkTree>, world: &World, agent: &Slug, path: &str) {
    tree.is_ready().await;
    tree.begin_write(agent, path, path, true);
    world.edit(path);
    tree.end_call(agent, path, true);
}

async fn leave(tree: &Arc<WorkTree>, agent: &Slug) -> Vec<String> {
    shown(&tree.leave(agent, false).await.expect("known changes").files)
}

#[tokio::test]
async fn what_a_person_edited_since_it_was_written_is_not_committed() {
    let world = Arc::new(World::default());
    let tree = tree(&world, 1);
    let ada = slug("ada");
    tree.enter(&ada);
    settle().await;
    for path in ["own", "edited"] {
        write(&tree, &world, &ada, path).await;
    }
    world.edit("edited");
    let (found, _) = tree.committable(&ada).await.expect("it is known");
    tree.begin_command(&ada, Some("1")).await;
    write(&tree, &world, &ada, "formatted").await;
    world.edit("formatted");
    let (later, _) = tree.committable(&ada).await.expect("it is known");
    let paths = |paths: &BTreeSet<String>| paths.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!((paths(&found.own), paths(&found.by_command)), ("own".to_owned(), String::new()));
    assert_eq!(found.others["edited"], "it was changed since you wrote it");
    assert_eq!((paths(&later.own), paths(&later.by_command)), ("own".to_owned(), "formatted".to_owned()));
}

#[tokio::test]
async fn a_change_is_of_whoever_named_it_or_ran_a_command_or_of_nobody() {
    let world = Arc::new(World::default());
    let tree = tree(&world, 1);
    let (ada, bob) = (slug("ada"), slug("bob"));
    [&ada, &bob].into_iter().for_each(|agent| tree.enter(agent));
    settle().await;
    world.edit("person");
    tree.begin_command(&ada, Some("1")).await;
    world.edit("by-ada");
    world.edit("both");
    write(&tree, &world, &bob, "named").await;
    tree.begin_command(&bob, Some("2")).await;
    world.edit("either");
    tree.end_call(&ada, "1", true);
    tree.end_call(&bob, "2", false);
    settle().await;
    world.edit("person-too");
    world.edit("both");
    // Refused: nothing is written.
    tree.begin_write(&bob, "3", "refused", false);
    world.edit("refused");
    tree.end_call(&bob, "3", false);
    assert_eq!(
        leave(&tree, &ada).await,
        [
            "both together ada+bob command",
            "both yours",
            "by-ada together ada+bob command",
            "either together ada+bob command",
            "person yours",
            "person-too yours",
            "refused yours"
        ]
    );
    let of_bob = leave(&tree, &bob).await;
    assert!(of_bob.contains(&"named own bob named".to_owned()), "{of_bob:?}");
}

#[tokio::test]
async fn runs_in_one_work_tree_know_of_each_other() {
    let world = Arc::new(World::default());
    let (one, two) = (tree(&world, 1), tree(&world, 2));
    let (ada, eve) = (slug("ada"), slug("eve"));
    one.enter(&ada);
    two.enter(&eve);
    settle().await;
    write(&two, &world, &eve, "named").await;
    two.begin_command(&eve, Some("1")).await;
    world.edit("commanded");
    two.end_call(&eve, "1", true);
    settle().await;
    assert_eq!(leave(&one, &ada).await, ["commanded other run", "named other run"]);
    assert_eq!(leave(&two, &eve).await, ["commanded own eve command", "named own eve named"]);
}

#[tokio::test]
async fn processes_left_running_count_from_the_first_command() {
    let world = Arc::new(World::default());
    let tree = tree(&world, 1);
    let ada = slug("ada");
    tree.enter(&ada);
    settle().await;
    world.edit("before");
    tree.begin_command(&ada, Some("1")).await;
    tree.end_call(&ada, "1", true);
    settle().await;
    world.edit("after");
    let changes = tree.leave(&ada, true).await.expect("known changes");
    assert_eq!(shown(&changes.files), ["after own ada command", "before yours"]);
}

/// One command and two at a time × what happens after the first and the second end.
#[tokio::test]
async fn an_agents_commands_count_until_the_last_has_ended() {
    for (calls, expected) in [
        (&["1"][..], &["after-1 yours", "before own ada command"][..]),
        (&["1", "2"], &["after-1 own ada command", "after-2 yours", "before own ada command"]),
    ] {
        let world = Arc::new(World::default());
        let tree = tree(&world, 1);
        let ada = slug("ada");
        tree.enter(&ada);
        for call in calls {
            tree.begin_command(&ada, Some(call)).await;
        }
        world.edit("before");
        for call in calls {
            tree.end_call(&ada, call, true);
            settle().await;
            world.edit(&format!("after-{call}"));
        }
        assert_eq!(leave(&tree, &ada).await, expected);
    }
}

/// A write that goes on names its file until its agent leaves, also past a snapshot; one that has ended does not.
#[tokio::test]
async fn a_write_names_its_file_while_it_goes_on() {
    for (has_ended, has_left, of_ada, of_bob) in [
        (false, false, &["f own ada named"][..], &[][..]),
        (true, false, &["f own ada named", "f yours"], &["f yours"]),
        (false, true, &["f own ada named"], &["f yours"]),
    ] {
        let world = Arc::new(World::default());
        let tree = tree(&world, 1);
        let (ada, bob) = (slug("ada"), slug("bob"));
        [&ada, &bob].into_iter().for_each(|agent| tree.enter(agent));
        tree.is_ready().await;
        tree.begin_write(&ada, "1", "f", true);
        world.edit("f");
        if has_ended {
            tree.end_call(&ada, "1", true);
        }
        let early = if has_left { leave(&tree, &ada).await } else { Vec::new() };
        tree.begin_command(&bob, Some("2")).await;
        tree.end_call(&bob, "2", true);
        settle().await;
        world.edit("f");
        assert_eq!(leave(&tree, &bob).await, of_bob, "{has_ended} {has_left}");
        assert_eq!(if has_left { early } else { leave(&tree, &ada).await }, of_ada, "{has_ended} {has_left}");
    }
}

#[tokio::test]
async fn each_of_two_agents_has_its_own_changes_of_one_file() {
    let world = Arc::new(World::default());
    let tree = tree(&world, 1);
    let (ada, bob) = (slug("ada"), slug("bob"));
    [&ada, &bob].into_iter().for_each(|agent| tree.enter(agent));
    write(&tree, &world, &ada, "f").await;
    tree.begin_command(&bob, Some("1")).await;
    tree.end_call(&bob, "1", true);
    settle().await;
    write(&tree, &world, &bob, "f").await;
    assert_eq!(leave(&tree, &ada).await, ["f own ada named"]);
    assert_eq!(leave(&tree, &bob).await, ["f own bob named"]);
}

/// Interrupted in the middle of work and between two agents' work × the first agent to go on and the second.
#[tokio::test]
async fn what_changed_while_a_run_was_down_is_told_once() {
    let (ada, bob) = (slug("ada"), slug("bob"));
    let since = vec!["since unknown".to_owned()];
    for (begun, of_ada, of_bob) in [
        (BTreeMap::new(), &since, &Vec::new()),
        (BTreeMap::from([(ada.clone(), 0)]), &since, &Vec::new()),
        (BTreeMap::from([(bob.clone(), 0)]), &Vec::new(), &since),
    ] {
        let world = Arc::new(World::default());
        let source = Source::new(&world, 1);
        let first = source.take(None).expect("a snapshot");
        world.edit("since");
        let tree = WorkTree::new(source, false, String::new(), Reports::channel().0);
        let snapshots = vec![(first.clone(), Interval::default())];
        tree.go_on(Before { first, snapshots, open: Interval::default(), begun: begun.clone() }).await;
        for (agent, expected) in [(&ada, of_ada), (&bob, of_bob)] {
            tree.enter(agent);
            assert_eq!(leave(&tree, agent).await, *expected, "{begun:?}");
        }
    }
}

/// A new run, one that is resumed in its first step, and one in a later step: a reviewer is shown all of it.
#[tokio::test]
async fn the_diff_of_a_run_begins_where_the_run_did() {
    for (step, expected) in [(None, "..1"), (Some(0), "..2"), (Some(1), "..3")] {
        let world = Arc::new(World::default());
        let source = Source::new(&world, 1);
        let tree = WorkTree::new(Arc::clone(&source) as Arc<_>, false, String::new(), Reports::channel().0);
        match step {
            None => tree.begin(),
            Some(step) => {
                let taken: Vec<WorkTreeSnapshot> = (0..=step).map(|_| source.take(None).expect("a snapshot")).collect();
                world.edit("while it was down");
                let snapshots = vec![(taken[step].clone(), Interval::default())];
                let (first, open, begun) = (taken[0].clone(), Interval::default(), BTreeMap::new());
                tree.go_on(Before { first, snapshots, open, begun }).await;
            }
        }
        settle().await;
        tree.enter(&slug("ada"));
        leave(&tree, &slug("ada")).await;
        assert_eq!(tree.diff(Vec::new()).await, expected, "{step:?}");
    }
}

/// A call that named a file and was refused or failed, with a snapshot in between × the person's change before and after
/// it. What was let through may have written before it failed.
#[tokio::test]
async fn a_refused_call_has_written_nothing_before_or_after_a_snapshot() {
    let (ada, bob) = (slug("ada"), slug("bob"));
    let cases =
        [(true, false, false), (false, true, false), (true, true, false), (true, false, true), (false, true, true)];
    for ((is_before, is_after, ok), is_allowed) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let world = Arc::new(World::default());
        let tree = tree(&world, 1);
        [&ada, &bob].into_iter().for_each(|agent| tree.enter(agent));
        settle().await;
        tree.begin_write(&bob, "1", "f", is_allowed);
        if is_before {
            world.edit("f");
        }
        tree.begin_command(&ada, Some("2")).await;
        tree.end_call(&ada, "2", true);
        settle().await;
        if is_after {
            world.edit("f");
        }
        tree.end_call(&bob, "1", ok);
        let expected = if ok || is_allowed { "f own bob named" } else { "f yours" };
        assert_eq!(leave(&tree, &bob).await, [expected], "{is_before} {is_after} {ok} {is_allowed}");
    }
}

/// Named before the last snapshot and since.
#[tokio::test]
async fn what_agents_named_before_an_interruption_is_known_after_it() {
    for is_since in [false, true] {
        let world = Arc::new(World::default());
        let source = Source::new(&world, 1);
        let [first, last] = [(); 2].map(|()| source.take(None).expect("a snapshot"));
        let mut named = Interval::default();
        named.name(&slug("ada"), "1", "f");
        let (ended, open) = if is_since { (Interval::default(), named) } else { (named, Interval::default()) };
        let snapshots = vec![(first.clone(), Interval::default()), (last, ended)];
        let tree = WorkTree::new(source, false, String::new(), Reports::channel().0);
        tree.go_on(Before { first, snapshots, open, begun: BTreeMap::new() }).await;
        let by_ada = BTreeMap::from([(slug("ada"), vec!["f".to_owned()])]);
        assert_eq!(tree.written_by_others(&slug("bob")), by_ada, "{is_since}");
        assert!(tree.written_by_others(&slug("ada")).is_empty());
    }
}

/// The snapshot before the work × the one after it.
#[tokio::test]
async fn changes_between_snapshots_that_failed_are_unknown() {
    for (fails_first, fails_last) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = Arc::new(World::default());
        let source = Source::new(&world, 1);
        let fails = |fails: bool| source.fails.store(fails, Ordering::Relaxed);
        let tree = WorkTree::new(Arc::<Source>::clone(&source), false, String::new(), Reports::channel().0);
        fails(fails_first);
        tree.begin();
        tree.is_ready().await;
        fails(fails_last);
        let ada = slug("ada");
        tree.enter(&ada);
        let is_known = tree.leave(&ada, false).await.is_some();
        assert_eq!(is_known, !fails_first && !fails_last, "{fails_first} {fails_last}");
    }
}

/// Their work ends at the same snapshot, and did not begin at the same.
#[tokio::test]
async fn agents_that_end_together_share_no_beginning() {
    let world = Arc::new(World::default());
    let source = Source::slow(&world, 1, std::time::Duration::from_millis(20));
    let tree = WorkTree::new(source, true, String::new(), Reports::channel().0);
    tree.begin();
    tree.is_ready().await;
    let (ada, bob, eve) = (slug("ada"), slug("bob"), slug("eve"));
    [&ada, &bob].into_iter().for_each(|agent| tree.enter(agent));
    for (number, path) in [(1, "x"), (2, "y"), (3, "z")] {
        world.edit(path);
        tree.begin_command(&ada, Some(path)).await;
        tree.end_call(&ada, path, true);
        while tree.activity.lock().snapshots.len() < 2 * number + 1 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        if number == 1 {
            tree.enter(&eve);
        }
    }
    // While the snapshot for the first is taken, the others wait for the next one.
    let (_, of_eve, of_bob) = tokio::join!(leave(&tree, &ada), leave(&tree, &eve), leave(&tree, &bob));
    assert_eq!(
        (of_eve, of_bob),
        (
            vec!["y yours".to_owned(), "z yours".to_owned()],
            ["x", "y", "z"].map(|path| format!("{path} yours")).to_vec()
        )
    );
}

#[tokio::test]
async fn one_snapshot_ends_the_work_of_all_that_have_finished() {
    let world = Arc::new(World::default());
    // As long as it takes all agents to finish.
    let source = Source::slow(&world, 1, std::time::Duration::from_millis(20));
    let tree = WorkTree::new(Arc::<Source>::clone(&source), true, String::new(), Reports::channel().0);
    tree.begin();
    tree.is_ready().await;
    let names: Vec<Slug> = (0..32).map(|number| slug(&format!("a{number}"))).collect();
    names.iter().for_each(|name| tree.enter(name));
    settle().await;
    world.edit("x");
    let mut leaving = tokio::task::JoinSet::new();
    for name in names {
        let tree = Arc::clone(&tree);
        leaving.spawn(async move { leave(&tree, &name).await });
    }
    while let Some(left) = leaving.join_next().await {
        assert_eq!(left.expect("it ends"), ["x yours"]);
    }
    // The first, that of whoever was first, and that of all others.
    assert!(source.taken.lock().len() <= 3);
    assert!(source.comparisons.load(Ordering::Relaxed) <= 3);
    assert!(tree.activity.lock().at_work.is_empty() && tree.activity.lock().left.is_empty());
}

/// Also while a command of ada's runs.
#[test]
fn what_squad_wrote_is_no_agents() {
    let path = || BTreeSet::from(["a".to_owned()]);
    let landed = OtherRuns { landed: path(), ..OtherRuns::default() };
    let by_other_run = OtherRuns { named: BTreeMap::from([("a".to_owned(), BTreeSet::new())]), ..OtherRuns::default() };
    let by_person = OtherRuns { squad: path(), ..OtherRuns::default() };
    for (others, is_named, expected) in [
        (&OtherRuns::default(), false, &["a own ada command"][..]),
        (&landed, false, &[]),
        (&landed, true, &["a own ada named"]),
        (&by_other_run, false, &["a other run"]),
        (&by_other_run, true, &["a together ada named"]),
        (&by_person, false, &["a yours"]),
        (&by_person, true, &["a own ada named"]),
    ] {
        for is_down in [false, true] {
            let (commands, changes) =
                (BTreeSet::from([slug("ada")]), vec![Change { path: "a".to_owned(), ..Change::default() }]);
            let mut interval = Interval { commands, others: others.clone(), changes, is_down, ..Interval::default() };
            if is_named {
                interval.name(&slug("ada"), "1", "a");
            }
            let net = interval.changes.clone();
            let seen = shown(&changes_of(Some(&slug("ada")), &[interval], net));
            let expected = if is_down && expected == ["a own ada command"] { &["a unknown"][..] } else { expected };
            assert_eq!(seen, expected, "{others:?} {is_named} {is_down}");
        }
    }
}

#[test]
fn what_several_may_have_done_to_git_is_together() {
    let git = GitChanges { hooks: vec!["pre-commit".to_owned()], ..GitChanges::default() };
    let names = |names: &[&str]| names.iter().map(|name| slug(name)).collect::<BTreeSet<Slug>>();
    for (commands, others, own, together) in [
        (&["ada"][..], &[][..], true, None),
        (&["ada", "bob"], &[], false, Some(vec![slug("ada"), slug("bob")])),
        (&["ada"], &["eve"], false, Some(vec![slug("ada")])),
        (&["bob"], &[], false, None),
        (&[], &["eve"], false, None),
        (&[], &[], false, None),
    ] {
        let others = OtherRuns { commands: names(others), ..OtherRuns::default() };
        let interval = Interval { commands: names(commands), others, git: git.clone(), ..Interval::default() };
        let changes = git_changes_of(&slug("ada"), std::slice::from_ref(&interval));
        let by = changes.together.first().map(|shared| shared.by.clone());
        assert_eq!((!changes.own.is_empty(), by), (own, together), "{commands:?}");
        let changes = git_changes_of(&slug("ada"), &[Interval { is_down: true, ..interval }]);
        let is_its = commands.contains(&"ada");
        assert!(changes.own.is_empty() && changes.together.is_empty() && changes.unknown.is_empty() != is_its);
    }
}

/// What really happened to a path.
#[derive(Default)]
struct Truth {
    /// Agents whose tool calls named and wrote it.
    named: BTreeSet<Slug>,
    /// Agents whose commands ran when it was edited.
    commands: BTreeSet<Slug>,
    /// Somebody else edited it while no command ran at all.
    is_quietly_edited: bool,
}

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// Two agents of one run and one of another, a person and a formatter, in any order.
async fn play(seed: u64) {
    let mut random = Random(seed * 2 + 1);
    let world = Arc::new(World::default());
    let trees = [tree(&world, 1), tree(&world, 2)];
    let agents = [(0, slug("ada")), (0, slug("bob")), (1, slug("eve"))];
    for (run, agent) in &agents {
        trees[*run].enter(agent);
    }
    settle().await;
    let mut truth: BTreeMap<String, Truth> = BTreeMap::new();
    let mut running: BTreeMap<Slug, String> = BTreeMap::new();
    for number in 0..24 {
        let (run, agent) = &agents[random.below(3)];
        let (tree, path) = (&trees[*run], format!("f{}", random.below(6)));
        match random.below(5) {
            0 => {
                truth.entry(path.clone()).or_default().named.insert(agent.clone());
                write(tree, &world, agent, &path).await;
            }
            1 | 2 => match running.remove(agent) {
                Some(call) => tree.end_call(agent, &call, random.below(2) == 0),
                None => {
                    tree.begin_command(agent, Some(&number.to_string())).await;
                    running.insert(agent.clone(), number.to_string());
                    if random.below(3) > 0 {
                        truth.entry(path.clone()).or_default().commands.extend(running.keys().cloned());
                        world.edit(&path);
                    }
                }
            },
            _ => {
                // A path that only persons and programs touch.
                let path = if random.below(2) == 0 { format!("{path}-person") } else { path };
                let known = truth.entry(path.clone()).or_default();
                known.commands.extend(running.keys().cloned());
                known.is_quietly_edited |= running.is_empty();
                world.edit(&path);
            }
        }
        settle().await;
    }
    let mut seen: [BTreeMap<String, Vec<Change>>; 2] = Default::default();
    for (run, agent) in &agents {
        let changes = trees[*run].leave(agent, false).await.expect("known changes").files;
        for change in changes {
            if change.class.is_of_agents() {
                assert!(change.by.contains(agent), "seed {seed}: {} is not {agent}'s", change.path);
            }
            seen[*run].entry(change.path.clone()).or_default().push(change);
        }
    }
    for (path, Truth { named, commands, is_quietly_edited }) in &truth {
        for (run, seen) in seen.iter().enumerate() {
            let seen = seen.get(path).map(Vec::as_slice).unwrap_or_default();
            let context = format!("seed {seed}, run {run}, {path}: {:?}, {named:?}, {commands:?}", shown(seen));
            assert_eq!(seen.is_empty(), named.is_empty() && commands.is_empty() && !is_quietly_edited, "{context}");
            for change in seen.iter().filter(|change| change.class.is_of_agents()) {
                match change.how {
                    Some(ChangeEvidence::Named) => {
                        assert!(change.by.iter().all(|agent| named.contains(agent)), "{context}");
                    }
                    // Others' commands may have begun since in the same interval.
                    _ => assert!(change.by.iter().any(|agent| commands.contains(agent)), "{context}"),
                }
            }
            for (of, agent) in agents.iter().filter(|(_, agent)| named.contains(agent)) {
                let is_its = |change: &Change| match *of == run {
                    true => change.by.contains(agent) && change.how == Some(ChangeEvidence::Named),
                    false => !(change.class == ChangeClass::Yours || change.class == ChangeClass::Unknown),
                };
                assert!(seen.iter().any(is_its), "{context} without {agent}");
            }
            if *is_quietly_edited && named.is_empty() {
                // The other run's commands cut no interval of this one.
                let is_nobodys = |change: &Change| !change.class.is_of_agents();
                assert!(seen.iter().any(is_nobodys), "{context}");
            }
        }
    }
}

#[tokio::test]
async fn nobody_gets_what_somebody_else_did_in_any_order() {
    for seed in 1..=2_000 {
        play(seed).await;
    }
}
