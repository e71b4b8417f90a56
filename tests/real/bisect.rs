//! `squad engines NAME --bisect A..B` with the real npm, and a registry on loopback that has the releases of a program.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::support::World;

const PACKAGE: &str = "@harbour/agent";
/// Does what its prompt says when it may.
const OBEDIENT: &str = "#!/bin/sh\n\
    line=$(sed -n 's/.*\"Run\":\"\\(echo[^\"]*\\)\".*/\\1/p' | tail -n 1)\n\
    [ -z \"$line\" ] || [ \"$1\" = --safe ] || sh -c \"$line\"\n\
    echo done\n";

/// Its releases: it begins to write although refused, and in one of them it does nothing any more.
fn program(release: &str) -> Option<String> {
    let disobedient = OBEDIENT.replace("[ \"$1\" = --safe ] || ", "");
    match release {
        "1.0.9" | "1.0.10" | "1.0.11" => Some(OBEDIENT.to_owned()),
        // Its file is missing.
        "1.1.0" => None,
        "1.1.1-beta.2" | "1.1.1" | "1.2.0" => Some(disobedient),
        "2.0.0" | "2.0.1" => Some("#!/bin/sh\necho done\n".to_owned()),
        _ => unreachable!("{release}"),
    }
}

const RELEASES: [&str; 9] = ["1.0.10", "1.0.9", "1.0.11", "1.1.0", "1.1.1-beta.2", "1.1.1", "1.2.0", "2.0.0", "2.0.1"];

fn packed(folder: &Path, release: &str, script: &str) -> PathBuf {
    let inner = folder.join(release).join("package");
    fs::create_dir_all(&inner).expect("a folder");
    let manifest = json!({ "name": PACKAGE, "version": release, "bin": { "harbour": "harbour.sh" } });
    fs::write(inner.join("package.json"), manifest.to_string()).expect("a file");
    fs::write(inner.join("harbour.sh"), script).expect("a file");
    let archive = folder.join(format!("{release}.tgz"));
    let done =
        Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(folder.join(release)).arg("package").status();
    assert!(done.expect("tar runs").success());
    archive
}

/// Serves the packages as a registry does. Returns its address.
fn registry(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut versions = serde_json::Map::new();
    for release in RELEASES {
        let tarball = format!("{url}/{release}.tgz");
        let version = json!({
            "name": PACKAGE, "version": release, "bin": { "harbour": "harbour.sh" }, "dist": { "tarball": tarball }
        });
        versions.insert(release.to_owned(), version);
        if let Some(script) = program(release) {
            packed(folder, release, &script);
        }
    }
    // Not every text that a registry calls a version is one.
    versions.insert("--prefix=/".to_owned(), json!({ "name": PACKAGE, "version": "--prefix=/", "dist": {} }));
    let document = json!({ "name": PACKAGE, "dist-tags": { "latest": "2.0.1" }, "versions": versions }).to_string();
    let folder = folder.to_owned();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &folder, &document)));
    url
}

fn answer(mut stream: TcpStream, folder: &Path, document: &str) {
    let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let (status, body) = match fs::read(folder.join(path.trim_start_matches('/'))) {
        Ok(archive) if path.ends_with(".tgz") => ("200 OK", archive),
        _ if path.eq_ignore_ascii_case("/@harbour%2fagent") => ("200 OK", document.as_bytes().to_vec()),
        _ => ("404 Not Found", b"{}".to_vec()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    // npm may have gone.
    let _ = stream.write_all(&[head.into_bytes(), body].concat());
}

fn world() -> (World, tempfile::TempDir) {
    let mut world = World::new(|_| []);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = PathBuf::from(&world.repo.variables["HOME"]);
    let engine = format!(
        "[engines.mine]\nprogram = \"harbour\"\npackage = \"{PACKAGE}\"\nargs = [\"{{mode}}\"]\nprompt = \"stdin\"\n\
         strict = [\"--safe\"]\nfree = [\"--yes\"]\n[engines.mine.loopback]\nmodel = \"none\"\n\
         [engines.unpublished]\nlike = \"codex\"\npackage = \"@harbour/nothing\"\n"
    );
    fs::create_dir_all(home.join("config/squad")).expect("a folder");
    fs::write(home.join("config/squad/config.toml"), engine).expect("a file");
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    for (name, value) in [
        ("npm_config_registry", registry(folder.path())),
        ("npm_config_cache", folder.path().join("cache").display().to_string()),
        ("TMPDIR", temporary.display().to_string()),
        // Which would keep it from what it was refused.
        ("SQUAD_SANDBOX_LEVEL", "rules".to_owned()),
    ] {
        world.repo.variables.insert(name.to_owned(), value);
    }
    // The checkout has an npm of its own, which is not run.
    world.repo.write_script("bin/npm", "#!/bin/sh\ntouch \"$HOME/ran-npm\"\n");
    let path = format!("{}:{}", world.repo.root().join("bin").display(), world.repo.variables["PATH"]);
    world.repo.variables.insert("PATH".to_owned(), path);
    world.repo.write(".npmrc", "registry=http://127.0.0.1:1/\n");
    (world, folder)
}

#[test]
fn the_release_that_began_to_disobey_is_named() {
    let (world, folder) = world();
    let ended = world.run(&["engines", "mine", "--bisect", "1.0.9..2.0.0", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let found: Value = serde_json::from_str(&ended.out).expect("JSON");
    let of = |field: &str| ["engine", "package", "from", "to"].contains(&field).then(|| found[field].clone());
    assert_eq!(
        [of("engine"), of("package"), of("from"), of("to")],
        [Some(json!("mine")), Some(json!(PACKAGE)), Some(json!("1.0.9")), Some(json!("2.0.0"))]
    );
    let changed = |claim: &str| {
        let all = found["changed"].as_array().expect("a list");
        all.iter().find(|change| change["claim"] == claim).cloned()
    };
    let release = |tried: &Value| tried["release"].as_str().expect("a text").to_owned();
    let tried: Vec<String> = found["tried"].as_array().expect("a list").iter().map(release).collect();
    assert_eq!(tried[..2], ["1.0.9", "2.0.0"], "{ended}");
    assert!(tried.iter().all(|release| release != "1.1.1-beta.2"), "{ended}");
    // It works where it may, up to the last release, which does nothing.
    assert_eq!(
        changed("allowed_command"),
        Some(json!({
            "claim": "allowed_command", "held": true, "holds": false, "last": "1.2.0", "first": "2.0.0", "skipped": []
        })),
        "{ended}"
    );

    // What was refused is first done after a release that cannot be installed.
    let ended = world.run(&["engines", "mine", "--bisect", "1.0.9..1.2.0"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let said =
        "`refused_command` was not tried in 1.0.11 and does not hold in 1.1.1; between them, 1.1.0 cannot be tried";
    assert!(ended.err.contains(said), "{ended}");
    assert!(ended.out.contains("1.1.0  cannot be tried: npm failed: E404"), "{ended}");
    assert!(ended.out.contains("4 releases left"), "{ended}");

    let same = world.run(&["engines", "mine", "--bisect", "1.1.1-beta.2..1.2.0"]);
    assert_eq!(same.code, Some(0), "{same}");
    assert!(same.err.contains(&format!("{PACKAGE} keeps the same in 1.1.1-beta.2 and in 1.2.0")), "{same}");
    assert_eq!(same.out.lines().count(), 2, "{same}");

    // Nothing is left of it, and nothing of the checkout was heeded.
    let left: Vec<_> = fs::read_dir(folder.path().join("tmp")).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!Path::new(&world.repo.variables["HOME"]).join("ran-npm").exists());
    assert_eq!(world.processes(), [], "{same}");
}

#[test]
fn what_cannot_be_bisected_says_why() {
    let (world, _folder) = world();
    for (engine, range, code, says) in [
        ("mine", "1.1.0..1.2.0", 4, "@harbour/agent 1.1.0 cannot be tried: npm failed: E404"),
        ("mine", "1.0.9..1.1.0", 4, "@harbour/agent 1.1.0 cannot be tried"),
        ("mine", "1.0.12..1.2.0", 2, "no release 1.0.12\nhint: the nearest are 1.0.10, 1.0.11, 1.1.0 and 1.1.1-beta.2"),
        ("mine", "1.2.0..1.0.9", 2, "1.2.0 is later than 1.0.9\nhint: --bisect 1.0.9..1.2.0"),
        ("mine", "1.0.9", 2, "it is written `A..B`"),
        ("mine", "1.0.9..--help", 2, "`--help` is no release's number"),
        ("unpublished", "1.0.9..1.2.0", 4, "@harbour/nothing: npm failed: E404"),
        ("rehearsal", "1.0.9..1.2.0", 2, "is part of squad"),
        ("cursor", "1.0.9..1.2.0", 2, "engines.cursor.loopback"),
        ("nobody", "1.0.9..1.2.0", 2, "there is no engine `nobody`"),
    ] {
        let ended = world.run(&["engines", engine, "--bisect", range]);
        assert_eq!(ended.code, Some(code), "{engine} {range}: {ended}");
        assert!(ended.err.contains(says), "{engine} {range}: {ended}");
    }
}
