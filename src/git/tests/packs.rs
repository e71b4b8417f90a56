//! squad writes packs: kept until a ref references them, folded over time, and only our own are touched.

use std::collections::BTreeSet;

use gix::objs::Kind;

use super::disk::{recorded, with_order};
use super::*;
use crate::git::{
    disk::Step,
    objects::NewObjects,
    references::{Durability, REFERENCE},
};

fn append(world: &World, number: usize) {
    world.append(&path_of(number), &format!("entry {number}"));
}

fn path_of(number: usize) -> String {
    format!("log/2026/03/{:02}/{number:03}.md", number % 28 + 1)
}

/// The names of our packs.
fn own(world: &World) -> BTreeSet<String> {
    let names = files_in(&world.packs(), "idx").into_iter();
    names.map(|path| stem(&path)).filter(|name| name.starts_with("pack-7371756164")).collect()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn kept(world: &World) -> Vec<String> {
    files_in(&world.packs(), "keep").iter().map(|path| stem(path)).collect()
}

fn assert_holds(world: &World, count: usize) {
    for number in 0..count {
        let text = world.git(&["show", &format!("refs/squad/log:{}", path_of(number))]);
        assert_eq!(text, format!("entry {number}"));
    }
    world.assert_sound();
}

/// Asserts that no squad writer left anything behind. Another test that is starting a program may briefly hold one of
/// our locks.
pub(super) fn assert_tidy(world: &World, what: &dyn std::fmt::Display) {
    let left = || {
        let files = ["keep", "unfinished"].into_iter().flat_map(|kind| files_in(&world.packs(), kind));
        let halves = files_in(&world.packs(), "pack").into_iter().filter(|pack| !pack.with_extension("idx").exists());
        files.chain(halves).collect::<Vec<_>>()
    };
    for _ in 0..500 {
        if left().is_empty() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        world.repository().ledger().try_tidy();
    }
    panic!("{what}: {:?}", left());
}

/// In every kind of repository, next to other packs.
#[test]
fn there_are_twelve_packs_of_ours_at_most() {
    let kinds =
        known_formats(&["--object-format=sha1", "--object-format=sha256", "--ref-format=reftable", "--shared=group"]);
    for kind in kinds {
        let world = World::with(&[kind]);
        world.git(&["repack", "-adq"]);
        let foreign = files_in(&world.packs(), "pack");
        append(&world, 0);
        let early = world.repository().ledger().snapshot().unwrap().unwrap();
        let (mut most, mut folds) = (0, 0);
        for number in 1..60 {
            let before = own(&world);
            append(&world, number);
            most = most.max(own(&world).len());
            folds += usize::from(!own(&world).is_superset(&before));
            // Opened before packs were added and removed.
            assert_eq!(early.find(&path_of(0)).unwrap().unwrap(), b"entry 0", "{kind}");
        }
        assert!(most <= 12, "{kind}: {most}");
        assert!((10..30).contains(&folds), "{kind}: {folds}");
        assert!(foreign.iter().all(|pack| pack.exists()), "{kind}: not ours to fold");
        assert_holds(&world, 60);
        #[cfg(unix)]
        for file in ["pack", "idx"].into_iter().flat_map(|extension| files_in(&world.packs(), extension)) {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file).unwrap().permissions()) & 0o777;
            let expected = if kind == "--shared=group" { 0o440 } else { 0o400 };
            assert!(mode & expected == expected && mode & 0o333 == 0, "{kind}: {mode:o}");
        }
    }
}

/// One fold later, not before: another process may be reading it.
#[test]
fn folded_packs_are_removed_by_the_next_fold() {
    let world = World::new();
    let mut ages: Vec<BTreeSet<String>> = vec![BTreeSet::new()];
    for number in 0..40 {
        append(&world, number);
        ages.push(own(&world));
    }
    let gone = |at: usize| ages[at - 1].difference(&ages[at]).count();
    let folds: Vec<usize> = (1..ages.len())
        .filter(|at| ages[*at].iter().any(|name| name.as_bytes()[15] == b'1' && !ages[at - 1].contains(name)))
        .collect();
    assert!(folds.len() > 5, "{folds:?}");
    assert_eq!(gone(folds[0]), 0, "the first fold removes nothing");
    assert!(folds[1..].iter().all(|at| gone(*at) > 0), "every later one removes what the one before made needless");
    assert!((1..ages.len()).all(|at| folds.contains(&at) || gone(at) == 0));
    assert_holds(&world, 40);
}

/// gc has listed the packs, and dies if one is missing at its end.
#[cfg(unix)]
#[test]
fn no_pack_is_removed_while_gc_runs() {
    let world = World::new();
    let lock = world.root().join(".git/gc.pid");
    fs::write(&lock, format!("{} somewhere", std::process::id())).unwrap();
    let (mut all, mut folds) = (BTreeSet::new(), 0);
    for number in 0..60 {
        append(&world, number);
        let now = own(&world);
        assert!(now.is_superset(&all), "{number}");
        folds += now.difference(&all).count() - 1;
        all = now;
    }
    assert!((5..20).contains(&folds), "what is needless is not folded again: {folds}");
    // A killed gc leaves its lock.
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    fs::write(&lock, format!("{} somewhere", dead.id())).unwrap();
    (60..70).for_each(|number| append(&world, number));
    assert!(own(&world).len() <= 12, "{:?}", own(&world));
    assert_holds(&world, 70);
}

#[test]
fn what_a_multi_pack_index_names_stays() {
    let world = World::new();
    (0..8).for_each(|number| append(&world, number));
    world.git(&["multi-pack-index", "write"]);
    let named = own(&world);
    for number in 8..60 {
        append(&world, number);
        let own = own(&world);
        assert!(own.is_superset(&named) && own.len() - named.len() <= 12, "{number}");
    }
    world.git(&["multi-pack-index", "verify"]);
    assert_holds(&world, 60);
    // It cannot be read, so its packs are unknown.
    fs::remove_file(world.packs().join("multi-pack-index")).unwrap();
    fs::write(world.packs().join("multi-pack-index"), "rubbish").unwrap();
    let before = own(&world);
    (60..70).for_each(|number| append(&world, number));
    assert!(own(&world).is_superset(&before));
    fs::remove_file(world.packs().join("multi-pack-index")).unwrap();
    assert_holds(&world, 70);
}

#[test]
fn only_the_keep_file_of_a_dead_writer_is_removed() {
    let world = World::new();
    world.git(&["repack", "-adq"]);
    let foreign = files_in(&world.packs(), "pack").remove(0).with_extension("keep");
    fs::write(&foreign, "squad\n").unwrap();
    let mut packs = Vec::new();
    for number in 0..4 {
        let before = own(&world);
        append(&world, number);
        packs.push(world.packs().join(own(&world).difference(&before).next().unwrap()));
    }
    let keep = |number: usize, content: &str| {
        let path = packs[number].with_extension("keep");
        fs::write(&path, content).unwrap();
        path
    };
    let (dead, mine, empty) = (keep(0, "squad 1\n"), keep(1, "mine\n"), keep(2, ""));
    let cut_short = keep(3, "");
    let mut permissions = fs::metadata(&cut_short).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&cut_short, permissions).unwrap();
    // A pack whose writer died before its index had its final name.
    let name = stem(&packs[0]);
    // A name that differs from that pack's in the last digit.
    let digit = if name.ends_with('f') { 'e' } else { 'f' };
    let half = world.packs().join(format!("{}{digit}", &name[..name.len() - 1]));
    for kind in ["pack", "idx.unfinished", "keep"] {
        fs::write(half.with_extension(kind), "squad").unwrap();
    }
    (4..40).for_each(|number| append(&world, number));
    assert_eq!([dead, cut_short, half.with_extension("keep")].map(|path| path.exists()), [false; 3]);
    assert_eq!([&foreign, &mine, &empty].map(|path| path.exists()), [true; 3]);
    assert!(packs[1].with_extension("pack").exists() && packs[2].with_extension("pack").exists(), "kept");
    assert!(!half.with_extension("pack").exists() && !half.with_extension("idx.unfinished").exists());
    assert_holds(&world, 40);
}

#[test]
fn a_pack_is_kept_until_its_writer_releases_it() {
    let world = World::new();
    let repository = world.repository();
    let mut objects = NewObjects::new(repository.hash());
    let id = objects.add(Kind::Blob, b"on its way".to_vec()).unwrap().to_string();
    let pack = repository.packs().add(&objects).unwrap();
    let names = kept(&world);
    assert_eq!(names.len(), 1);
    (0..30).for_each(|number| append(&world, number));
    world.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(kept(&world), names);
    assert_eq!(world.git(&["cat-file", "-p", &id]), "on its way");
    drop(pack);
    assert_tidy(&world, &"let go");
    world.git(&["gc", "-q", "--prune=now"]);
    assert!(!world.try_git(&["cat-file", "-e", &id]).status.success(), "nothing leads to it");
    // Nothing will ever reference it.
    repository.packs().add(&objects).unwrap().discard();
    assert!(!world.try_git(&["cat-file", "-e", &id]).status.success());
    assert_eq!((own(&world).len(), kept(&world).len()), (0, 0));
    assert_holds(&world, 30);
}

/// The order is `.keep`, `.pack`, index, ref, then the `.keep` is removed. No file has a name that `git prune` removes,
/// and below `refs` there are only refs and git's own locks: anything else makes `git gc` fail.
#[test]
fn an_append_goes_in_this_order() {
    for keeps_order in [true, false] {
        let world = World::new();
        append(&world, 0);
        let ((), steps) = recorded(|| with_order(keeps_order, || append(&world, 1)));
        let at = |what: &str, is_it: &dyn Fn(&Step) -> bool| {
            steps.iter().position(is_it).unwrap_or_else(|| panic!("{what}: {steps:#?}"))
        };
        let ends = |path: &Path, end: &str| path.to_string_lossy().ends_with(end);
        let order = [
            at("keep", &|step| matches!(step, Step::Create(path) if ends(path, ".keep"))),
            at("pack", &|step| matches!(step, Step::Create(path) if ends(path, ".pack"))),
            at("index", &|step| matches!(step, Step::Create(path) if ends(path, ".idx.unfinished"))),
            at(
                "pack at the disk",
                &|step| matches!(step, Step::Reach(path) | Step::Flush(path) if ends(path, ".pack")),
            ),
            at(
                "index at the disk",
                &|step| matches!(step, Step::Reach(path) | Step::Flush(path) if ends(path, ".unfinished")),
            ),
            at("whole", &|step| matches!(step, Step::Rename(_, path) if ends(path, ".idx"))),
            at("ref", &|step| matches!(step, Step::Rename(_, path) if ends(path, "refs/squad/log"))),
            at("ref at the disk", &|step| matches!(step, Step::FlushFolder(path) if ends(path, "refs/squad"))),
            at("no keep", &|step| matches!(step, Step::Remove(path) if ends(path, ".keep"))),
        ];
        assert!(order.is_sorted(), "{order:?} {steps:#?}");
        for step in &steps {
            let (Step::Create(path) | Step::Rename(_, path) | Step::Link(_, path)) = step else { continue };
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(!name.starts_with("tmp_"), "{step:?}");
            let below_refs = path.starts_with(world.root().join(".git/refs"));
            assert!(!below_refs || ["log", "log.lock"].contains(&&*name), "{step:?}");
        }
    }
}

/// Each flush costs as much as a snapshot of a small work tree, and a run's first one makes a folder.
#[test]
fn a_new_folder_of_refs_is_flushed_where_nothing_keeps_the_order() {
    for keeps_order in [true, false] {
        let world = World::new();
        append(&world, 0);
        let repository = world.repository();
        let tip = repository.references().read(REFERENCE).unwrap().unwrap();
        let move_ref = || {
            repository.ledger().move_ref_as("refs/squad/runs/r/1", (None, tip), Durability::WithNext).unwrap();
        };
        let ((), steps) = recorded(|| with_order(keeps_order, move_ref));
        let refs = world.root().join(".git/refs/squad");
        for (folder, above) in [("runs", ""), ("runs/r", "runs")] {
            let made = steps.iter().position(|step| *step == Step::MakeFolder(refs.join(folder))).unwrap();
            let is_flushed = steps[made..].contains(&Step::FlushFolder(refs.join(above)));
            assert_eq!(is_flushed, !keeps_order, "{folder}: {steps:#?}");
        }
    }
}

/// Existing objects may just be removed: a running gc does not see references made since it started.
#[test]
fn a_pack_holds_everything_that_is_new_in_it() {
    let world = World::new();
    append(&world, 0);
    let first = world.git(&["rev-parse", "refs/squad/log"]);
    append(&world, 1);
    world.unpack();
    let reachable = |range: &[&str]| -> BTreeSet<String> {
        let listed = world.git(&[&["rev-list", "--objects", "--no-object-names"], range].concat());
        listed.lines().map(str::to_owned).collect()
    };
    let new = reachable(&["refs/squad/log", &format!("^{}", first.trim()), "^main"]);
    world.git(&["update-ref", "refs/squad/log", first.trim()]);
    append(&world, 1);
    let index = files_in(&world.packs(), "idx").remove(0);
    let listed = world.git(&["verify-pack", "-v", &index.display().to_string()]);
    let packed: BTreeSet<String> =
        listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert!(new.len() > 5 && packed.is_superset(&new), "{new:?} {packed:?}");

    // Likewise for the trees of a rescue that git had written before for somebody else.
    world.write("folder/deep/new.txt", "new\n");
    world.git(&["add", "."]);
    world.git(&["write-tree"]);
    let before: BTreeSet<String> = own(&world);
    let saved = world.repository().rescue(|_| None, |_, _| "rescue".to_owned(), &ada(), noon()).unwrap();
    let trees = world.git(&[
        "ls-tree",
        "-r",
        "-t",
        "--format=%(objecttype) %(objectname)",
        &format!("refs/squad/rescue/{}", saved.id),
    ]);
    let index = world.packs().join(own(&world).difference(&before).next().unwrap()).with_extension("idx");
    let packed = world.git(&["verify-pack", "-v", &index.display().to_string()]);
    for tree in trees.lines().filter_map(|line| line.strip_prefix("tree ")) {
        assert!(packed.contains(tree), "{tree}");
    }
    assert_eq!(trees.matches("tree ").count(), 2);
    let stray = world.git(&["count-objects"]);
    world.git(&["stash", "list"]);
    world.repository().rescue(|_| None, |_, _| "another".to_owned(), &ada(), noon()).unwrap();
    assert_eq!(world.git(&["count-objects"]), stray, "nothing of ours is loose");
}

#[test]
fn signed_or_not_a_landing_leaves_nothing_loose() {
    let world = World::new();
    let script = world.folder.path().join("sign");
    crate::script::write(&script, "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho signature\n");
    let loose = world.git(&["count-objects"]);
    for (number, is_signed) in [false, true].into_iter().enumerate() {
        if is_signed {
            world.git(&["config", "commit.gpgSign", "true"]);
            world.git(&["config", "gpg.program", &script.display().to_string()]);
        }
        landed(&world.repository(), &change(&[(&format!(".squad/{number}.md"), "text\n")]));
        assert_eq!(world.git(&["cat-file", "commit", "main"]).contains("gpgsig"), is_signed);
        assert_eq!((world.git(&["count-objects"]), own(&world).len()), (loose.clone(), number + 1));
        assert_tidy(&world, &"landed");
    }
    world.assert_sound();
}

/// Two megabytes of similar texts: git folds them into a small pack in the background, and the next writer adopts it.
#[test]
fn a_large_fold_is_made_by_git() {
    let world = World::new();
    let line = |number: usize| format!("{:x}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let text: String = (0..12_000).map(line).collect();
    let repository = world.repository();
    let bytes = || files_in(&world.packs(), "pack").iter().map(|pack| fs::metadata(pack).unwrap().len()).sum::<u64>();
    let is_made = || own(&world).iter().any(|name| name.as_bytes()[15] == b'2');
    let mut most = 0;
    for number in 0..400 {
        let text = if number < 40 { format!("{text}{number}") } else { "small".to_owned() };
        world.append(&path_of(number), &text);
        most = most.max(bytes());
        assert!(own(&world).len() <= 12, "{number}: {:?}", own(&world));
        if number > 60 && is_made() {
            break;
        }
        if number > 60 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    assert!(is_made(), "{} of {most}", bytes());
    repository.fold_now().unwrap();
    let (packs, size) = repository.packs().extent().unwrap();
    assert!(packs == 1 && size < most / 4, "{packs} {size}");
    assert_eq!(world.git(&["show", &format!("refs/squad/log:{}", path_of(39))]), format!("{text}39"));
    assert!(!world.root().join(".git/squad/fold").exists());
    world.assert_sound();
}

/// gix reserves slots for 32 packs more than existed when it was opened.
#[test]
fn an_object_in_a_later_pack_is_found() {
    let world = World::new();
    append(&world, 0);
    let snapshot = world.repository().ledger().snapshot().unwrap().unwrap();
    let store = world.repository().objects();
    store.tree_of(&world.repository().parse_commit(world.git(&["rev-parse", "main"]).trim()).unwrap()).unwrap();
    let missing = gix::ObjectId::from_hex(&[b'1'; 40]).unwrap();
    assert!(store.blob(&missing).is_err());
    for number in 0..80 {
        let blob = world.folder.path().join("blob");
        fs::write(&blob, number.to_string()).unwrap();
        let id = world.git(&["hash-object", "-w", &blob.display().to_string()]);
        let mut pack = world.command(&world.root(), &["pack-objects", "-q", ".git/objects/pack/pack"]);
        let list = world.folder.path().join("list");
        fs::write(&list, &id).unwrap();
        assert!(pack.stdin(fs::File::open(&list).unwrap()).stdout(Stdio::null()).status().unwrap().success());
        world.git(&["prune-packed", "-q"]);
        let id = world.repository().objects().parse_id(id.trim()).unwrap();
        assert_eq!(store.blob(&id).unwrap(), number.to_string().as_bytes(), "another one was missing before");
    }
    assert_eq!(snapshot.find(&path_of(0)).unwrap().unwrap(), b"entry 0");
    assert!(store.blob(&missing).is_err());
}
