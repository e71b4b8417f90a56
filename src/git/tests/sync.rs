//! Merging ledgers.

use super::*;
use crate::git::{Difference, PushResult};

/// Two clones that have fetched each other's ledger but not merged it.
fn strangers(init: &[&str], ours: &[(&str, &str)], theirs: &[(&str, &str)]) -> [World; 2] {
    let worlds = [World::with(init), World::with(init)];
    for (world, files) in worlds.iter().zip([ours, theirs]) {
        files.iter().for_each(|(path, text)| world.append(path, text));
    }
    know(&worlds[0], &worlds[1]);
    know(&worlds[1], &worlds[0]);
    worlds
}

fn know(world: &World, other: &World) {
    let other = other.root().display().to_string();
    world.git(&["fetch", "-q", &other, "+refs/squad/log:refs/squad/remotes/origin/log"]);
}

fn merge_fetched(world: &World) -> String {
    world.repository().remote("origin").merge_fetched(&|_| Default::default(), &|a, _| a.to_owned(), &ada()).unwrap();
    world.git(&["rev-parse", "refs/squad/log"])
}

#[test]
fn both_sides_make_the_same_commit() {
    for format in known_formats(&["--object-format=sha1", "--object-format=sha256", "--ref-format=reftable"]) {
        let worlds = strangers(
            &[format],
            &[("log/2026/03/04/a.md", "a"), ("log/2026/03/05/b.md", "b"), ("memory/2026/03/05/m.md", "m")],
            &[("log/2026/03/05/c.md", "c"), ("decisions/2027/01/01/d.md", "d")],
        );
        let folders = ["log".to_owned(), "memory".to_owned()];
        assert_eq!(worlds[0].repository().unsynced(&folders).unwrap(), Some(3), "{format}");
        let tips = worlds.each_ref().map(merge_fetched);
        assert_eq!(tips[0], tips[1], "{format}");
        assert_eq!(worlds[0].entries().len(), 5);
        assert_eq!(merge_fetched(&worlds[0]), tips[0], "again is nothing new");
        assert_eq!(worlds[0].git(&["rev-list", "--merges", "--count", "refs/squad/log"]), "1\n");
        worlds.iter().for_each(World::assert_sound);
    }
}

/// If the merge commit had the local time, it would differ between the clones.
#[test]
fn clocks_that_differ_make_no_difference() {
    for (ours, theirs) in
        [("2024-01-01T00:00:00Z", "2031-01-01T00:00:00Z"), ("2031-01-01T00:00:00Z", "2024-01-01T00:00:00Z")]
    {
        let worlds = [World::new(), World::new()];
        for (world, (path, at)) in worlds.iter().zip([("log/2026/03/04/a.md", ours), ("log/2026/03/04/b.md", theirs)]) {
            let ledger = world.repository();
            ledger.ledger().append(&[entry(path, path)], "entry", &ada(), at.parse().unwrap()).unwrap();
        }
        know(&worlds[0], &worlds[1]);
        know(&worlds[1], &worlds[0]);
        let tips = worlds.each_ref().map(merge_fetched);
        assert_eq!(tips[0], tips[1], "{ours} {theirs}");
        let later: Timestamp = ours.max(theirs).parse().unwrap();
        let expected = format!("{0} {0}\n", later.as_second());
        assert_eq!(worlds[0].git(&["log", "-1", "--format=%ct %at", "refs/squad/log"]), expected);
    }
}

#[test]
fn what_was_removed_on_top_of_ours_stays_here() {
    let worlds = [World::new(), World::new()];
    worlds[0].append("log/2026/03/04/a.md", "a");
    know(&worlds[1], &worlds[0]);
    merge_fetched(&worlds[1]);
    let tree = worlds[1].git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let emptied = worlds[1].git(&["commit-tree", tree.trim(), "-p", "refs/squad/log", "-m", "emptied"]);
    worlds[1].git(&["update-ref", "refs/squad/log", emptied.trim()]);
    worlds[1].append("log/2026/03/04/b.md", "b");
    know(&worlds[0], &worlds[1]);
    merge_fetched(&worlds[0]);
    assert_eq!(worlds[0].entries(), ["log/2026/03/04/a.md", "log/2026/03/04/b.md"]);
}

/// An entry counts as synced if any ref of the remote has it.
#[test]
fn an_entry_that_any_ref_of_the_remote_has_is_synced() {
    let worlds = [World::new(), World::new()];
    for name in ["a", "b", "c"] {
        worlds[0].append(&format!("log/2026/03/04/{name}.md"), name);
    }
    let remote = "refs/squad/remotes/origin";
    assert_eq!(worlds[0].repository().unsynced(&["log".into()]).unwrap(), None);
    for (copy, name, unsynced) in [("log", "a", 2), ("state", "b", 1), ("clones/x", "c", 0)] {
        let other = World::new();
        other.append(&format!("log/2026/03/04/{name}.md"), name);
        let refspec = format!("refs/squad/log:{remote}/{copy}");
        worlds[0].git(&["fetch", "-q", &other.root().display().to_string(), &refspec]);
        let repository = worlds[0].repository();
        assert_eq!(repository.unsynced(&["log".into()]).unwrap(), Some(unsynced), "{copy}");
        let difference = repository.remote("origin").difference().unwrap();
        assert_eq!((difference.to_send, difference.to_receive), (unsynced, 0), "{copy}");
        // On the other side, an entry in two refs is counted once.
        worlds[1].git(&["fetch", "-q", &other.root().display().to_string(), &refspec]);
        worlds[1].git(&["update-ref", &format!("{remote}/clones/y{name}"), &format!("{remote}/{copy}")]);
        let difference = worlds[1].repository().remote("origin").difference().unwrap();
        assert_eq!((difference.to_send, difference.to_receive), (0, 3 - unsynced), "{copy}");
    }
}

#[test]
fn two_contents_of_one_name_are_both_kept() {
    let worlds = strangers(
        &[],
        &[("log/2026/03/04/a.md", "ours"), ("log/x", "file"), ("log/same.md", "same")],
        &[("log/2026/03/04/a.md", "theirs"), ("log/x/below.md", "folder"), ("log/same.md", "same")],
    );
    let tips = worlds.each_ref().map(merge_fetched);
    assert_eq!(tips[0], tips[1]);
    let snapshot = worlds[0].repository().ledger().snapshot().unwrap().unwrap();
    let mut texts: Vec<_> = snapshot
        .listing("")
        .unwrap()
        .value
        .iter()
        .map(|file| snapshot.read("", &file.key()).unwrap().unwrap())
        .collect();
    texts.sort();
    assert_eq!(texts, [&b"file"[..], b"folder", b"ours", b"same", b"theirs"]);
    assert_eq!(snapshot.find("log/x/below.md").unwrap().unwrap(), b"folder");
    worlds.iter().for_each(World::assert_sound);
    // Merging one of the two again changes nothing.
    worlds[0].git(&["update-ref", "refs/squad/remotes/origin/log", "refs/squad/log~1"]);
    assert_eq!(merge_fetched(&worlds[0]), tips[0]);
}

#[test]
fn an_empty_ledger_fast_forwards_and_one_ahead_stays() {
    let worlds = [World::new(), World::new()];
    let origin = worlds[0].repository();
    let origin = origin.remote("origin");
    assert!(
        origin.merge_fetched(&|_| Default::default(), &|a, _| a.to_owned(), &ada()).is_ok(),
        "nothing on either side"
    );
    worlds[1].append("log/2026/03/04/a.md", "a");
    let other = worlds[1].root().display().to_string();
    worlds[0].git(&["fetch", "-q", &other, "refs/squad/log:refs/squad/remotes/origin/log"]);
    assert_eq!(merge_fetched(&worlds[0]), worlds[1].git(&["rev-parse", "refs/squad/log"]));
    worlds[0].append("log/2026/03/04/b.md", "b");
    let tip = worlds[0].git(&["rev-parse", "refs/squad/log"]);
    assert_eq!(merge_fetched(&worlds[0]), tip);
    assert_eq!(worlds[0].repository().unsynced(&["log".into()]).unwrap(), Some(1));
}

#[test]
fn remotes_whose_names_could_be_anything_else_are_not_taken() {
    let world = World::new();
    for name in ["origin", "fork-2", "mine"] {
        world.git(&["remote", "add", name, "nowhere"]);
    }
    fs::write(
        world.root().join(".git/config"),
        world.read(".git/config") + "[remote \"--upload-pack=x\"]\nurl = x\n[remote \"a/../b\"]\nurl = y\n",
    )
    .unwrap();
    assert_eq!(world.repository().remotes().unwrap(), ["origin", "fork-2", "mine"]);
    world.git(&["config", "branch.main.remote", "mine"]);
    assert_eq!(world.repository().remotes().unwrap(), ["mine", "origin", "fork-2"]);
}

/// A ref of another clone is deleted from the remote once ours has its entries, but only if it is still what we merged.
#[test]
fn a_ref_that_moved_after_the_fetch_is_not_tidied_away() {
    for moves in [false, true] {
        let (hub, job, world) = (World::new(), World::new(), World::new());
        let url = hub.root().display().to_string();
        let own = "refs/squad/clones/job";
        let push = |path: &str| {
            job.append(path, path);
            job.git(&["push", "--quiet", "--force", &url, &format!("refs/squad/log:{own}")]);
        };
        push("log/2026/03/04/a.md");
        world.git(&["remote", "add", "origin", &url]);
        let repository = world.repository();
        let remote = repository.remote("origin");
        assert_eq!(remote.fetch().unwrap().to_receive, 1);
        if moves {
            push("log/2026/03/04/b.md");
        }
        merge_fetched(&world);
        assert_eq!(remote.push("refs/squad/log", &ada()).unwrap(), PushResult::Done);
        remote.tidy().unwrap();
        assert_eq!(hub.try_git(&["rev-parse", "--verify", "--quiet", own]).status.success(), moves);
        // Nothing is lost either way, and the next round has it all.
        remote.fetch().unwrap();
        merge_fetched(&world);
        assert_eq!(world.entries().len(), if moves { 2 } else { 1 });
    }
}

/// Whether all of another clone's ledger can be read here × is merged: what cannot be read may be nowhere else.
#[test]
fn a_ref_that_cannot_be_read_here_is_not_tidied_away() {
    for (is_read, is_merged) in [(true, true), (true, false), (false, false)] {
        let (hub, job, world) = (World::new(), World::new(), World::new());
        let url = hub.root().display().to_string();
        let own = "refs/squad/clones/job";
        job.append("log/2026/03/04/a.md", "a");
        job.git(&["push", "--quiet", &url, &format!("refs/squad/log:{own}")]);
        world.append("log/2026/03/05/b.md", "b");
        world.git(&["remote", "add", "origin", &url]);
        world.repository().remote("origin").fetch().unwrap();
        if is_merged {
            merge_fetched(&world);
        }
        if !is_read {
            world.lose("refs/squad/remotes/origin/clones/job:log/2026/03/04");
        }
        world.repository().remote("origin").tidy().unwrap();
        let is_there = hub.try_git(&["rev-parse", "--verify", "--quiet", own]).status.success();
        assert_eq!(is_there, !is_merged, "read {is_read}, merged {is_merged}");
    }
}

/// What git fetched and nobody merged is merged before the copy of it is deleted or overwritten.
#[test]
fn what_is_only_fetched_counts_as_missing_until_it_is_merged() {
    let (theirs, world) = (World::new(), World::new());
    theirs.append("log/2026/03/04/a.md", "a");
    world.append("log/2026/03/04/b.md", "b");
    let repository = world.repository();
    let remote = repository.remote("origin");
    let difference = |(to_send, to_receive): (usize, usize)| Difference { to_send, to_receive };
    assert_eq!(remote.difference().unwrap(), difference((1, 0)), "nothing was fetched");
    know(&world, &theirs);
    assert_eq!(remote.difference().unwrap(), difference((1, 1)), "fetched and not merged");
    merge_fetched(&world);
    assert_eq!(remote.difference().unwrap(), difference((1, 0)), "merged");
    assert_eq!(world.entries().len(), 2);
}
