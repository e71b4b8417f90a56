//! Odd repositories: the tree of a snapshot is the one that the real git makes with `git add --all`.

use super::*;
use super::{
    rescue::save,
    work_tree::{expected, take, tree_of},
};

/// A name, the options of `git init`, what is done before the first commit (nothing: there is none), and after it.
///
/// A line is `PATH = TEXT` (`\r`, `\n`, `\0` and, in a path, `\x` for a byte that is no text), `rm PATH`, `exec PATH`,
/// `link PATH TARGET`, `wide PATH TEXT` (in UTF-16), `in PATH`: that is the work tree, `first ARGUMENTS`: run by git on
/// the index it adds to, or the arguments of git.
type Row = (&'static str, &'static [&'static str], &'static str, &'static str);

const ROWS: &[Row] = &[
    ("clean", &[], "f = 1\n", ""),
    ("no commit", &[], "", "f = 1\n"),
    ("no commit, staged", &[], "", "f = 1\n|add f|f = 2\n|g = 1\n"),
    ("SHA-256", &["--object-format=sha256"], "f = 1\n|d/g = 1\n", "f = 2\n|d/h = 1\n|rm d/g"),
    ("detached", &[], "f = 1\n", "checkout -q --detach|f = 2\n"),
    ("linked", &[], "f = 1\n|d/g = 1\n", "worktree add -q ../linked|in ../linked|../linked/f = 2\n|rm ../linked/d/g"),
    ("staged and changed again", &[], "f = 1\n|g = 1\n", "f = 2\n|add f|f = 3\n|g = 2\n|add g|g = 1\n"),
    ("deleted", &[], "f = 1\n|d/g = 1\n|d/h = 1\n|e/i = 1\n", "rm f|rm d/g|rm e"),
    ("removed from the index only", &[], "f = 1\n|g = 1\n", "rm --cached -q f g|g = 2\n"),
    ("added with intent", &[], "f = 1\n", "g = 1\n|add -N g|h = |add -N h|i = 1\n|add -N i|rm i"),
    ("empty files", &[], "f = |g = 1\n", "f = 1\n|g = |h = "),
    ("same size, same second", &[], "f = 1\n|g = 1\n", "f = 2\n"),
    ("same size, staged", &[], "f = 1\n", "f = 2\n|add f|f = 3\n"),
    ("folder for a file", &[], "f = 1\n|d/g = 1\n", "rm f|f/a/b = 1\n|rm d|d = 1\n"),
    ("folder for a file, staged", &[], "f = 1\n|d/g = 1\n", "rm f|f/a/b = 1\n|rm d|d = 1\n|add -A|rm f|f = 2\n"),
    ("names of parts", &[], "a = 1\n|a-b = 1\n|a0 = 1\n", "rm a|a/x = 1\n|a-b = 2\n|rm a0|a0/y = 1\n"),
    (
        "ignored",
        &[],
        ".gitignore = out/\n*.o\n!k.o\n|out/f = 1\n|add -f out/f",
        "out/f = 2\n|out/g = 1\n|k.o = 1\n|l.o = 1\n",
    ),
    ("ignored below", &[], "d/.gitignore = /f\n", "d/f = 1\n|d/e/f = 1\n|f = 1\n|d/e/.gitignore = *\n"),
    (
        "ignored by the user",
        &[],
        "f = 1\n",
        "config --global core.excludesFile ~/none|../home/none = *.x\n|a.x = 1\n|b = 1\n",
    ),
    ("ignored here", &[], "f = 1\n", ".git/info/exclude = g\n|g = 1\n|h = 1\n"),
    (
        "assumed unchanged",
        &[],
        "f = 1\n",
        "update-index --assume-unchanged f|f = 2\n|first update-index --no-assume-unchanged f",
    ),
    (
        "skipped",
        &[],
        "f = 1\n|g = 1\n",
        "update-index --skip-worktree f g|f = 2\n|rm g|first update-index --no-skip-worktree f",
    ),
    ("sparse", &[], "a/f = 1\n|b/f = 1\n|c = 1\n", "sparse-checkout set --cone a|a/f = 2\n|a/g = 1\n|b/n = 1\n"),
    (
        "sparse index",
        &[],
        "a/f = 1\n|b/f = 1\n|b/c/f = 1\n",
        "sparse-checkout set --cone --sparse-index a|a/f = 2\n|a/g = 1\n",
    ),
    (
        "sparse, staged",
        &[],
        "a/f = 1\n|b/f = 1\n",
        "sparse-checkout set --cone --sparse-index a|a/f = 2\n|add a|b/n = 1\n",
    ),
    ("split index", &[], "f = 1\n|g = 1\n", "update-index --split-index|f = 2\n|add f|g = 2\n"),
    (
        "index 4, no hash",
        &[],
        "f = 1\n|f2 = 1\n",
        "config index.skipHash true|update-index --index-version 4|f = 2\n|add f|f2 = 2\n",
    ),
    ("nested", &[], "f = 1\n", "init -q nested|nested/f = 1\n|f = 2\n"),
    ("nested, later tracked", &[], "d/f = 1\n", "init -q d|d/f = 2\n|d/g = 1\n"),
    (
        "submodule",
        &[],
        "f = 1\n|add f|commit -qm zero|clone -q --bare . ../origin|submodule --quiet add ../origin sub",
        "sub/f = 1\n|.gitmodules = x\n",
    ),
    (
        "repository for a file",
        &[],
        "f = 1\n|nested = 1\n",
        "rm nested|init -q nested|-C nested commit -q --allow-empty -m inner|first rm --cached -q nested",
    ),
    (
        "conflict",
        &[],
        "f = 1\n|g = 1\n",
        "checkout -qb side|f = side\n|rm g|commit -qam side|checkout -q main|f = main\n|g = 2\n|commit -qam main|try merge side",
    ),
    (
        "conflict, settled",
        &[],
        "f = 1\n|g = 1\n",
        "checkout -qb side|f = side\n|g = side\n|n = side\n|add n|commit -qam side|checkout -q main|f = main\n|g = main\n|n = main\n|add n|commit -qam main|try merge side|f = both\n|rm g|rm n|n/x = 1\n",
    ),
    (
        "conflict with line ends",
        &[],
        "f = 1\r\n",
        "checkout -qb side|f = side\r\n|commit -qam side|checkout -q main|f = main\r\n|commit -qam main|try merge side|config core.autocrlf true|f = both\r\n",
    ),
    (
        "attributes",
        &[],
        ".gitattributes = *.t text\n*.a text=auto\n*.l eol=lf\n*.c eol=crlf\n*.b -text\n*.o crlf=input\n*.n binary\n|f.t = 1\n|f.a = 1\r\n|f.l = 1\n",
        "f.t = 1\r\n2\r3\n|f.a = 2\r\n|f.l = 2\r\n|f.c = 1\r\n|f.b = 1\r\n|f.o = 1\r\n|f.n = 1\r\n|g.a = 1\r\n\\0",
    ),
    (
        "attributes changed",
        &[],
        "f = 1\r\n|g = 1\r\n|d/h = 1\r\n",
        ".gitattributes = * text\n|g = 2\r\n|d/.gitattributes = h -text\n|d/h = 2\r\n",
    ),
    ("attributes of the index", &[], ".gitattributes = * text\n|f = 1\n", "rm .gitattributes|f = 2\r\n"),
    (
        "attributes of the user",
        &[],
        "f = 1\n",
        "config --global core.attributesFile ~/att|../home/att = f text\n|.git/info/attributes = g text\n|f = 2\r\n|g = 2\r\n|h = 2\r\n",
    ),
    ("macros", &[], "f = 1\n", ".gitattributes = [attr]mine text\n* mine\n|f = 2\r\n|config core.eol crlf"),
    ("ident", &[], ".gitattributes = f ident\n|f = $Id$\n", "f = $Id: 12 $ $Id: a b $\n"),
    (
        "encoding",
        &[],
        ".gitattributes = f working-tree-encoding=UTF-16\ng working-tree-encoding=ISO-8859-1\n|wide f 1\n",
        "wide f 2\r\n|g = \u{91}",
    ),
    (
        "filters",
        &[],
        "config filter.up.clean tr_a-z_A-Z|config filter.id.clean cat|config filter.id.required true|config filter.no.clean false|.gitattributes = *.u filter=up\n*.i filter=id text\n*.n filter=no\n*.m filter=missing\n|f.u = a\n",
        "f.u = b\n|f.i = b\r\n|f.n = b\n|f.m = b\n",
    ),
    (
        "filters of the user",
        &[],
        "config filter.up.clean tr_a-z_A-Z|f = a\n",
        "config --global core.attributesFile ~/att|../home/att = f filter=up\n|.git/info/attributes = g ident\n|f = b\n|g = $Id: 1 $\n|h = $Id: 1 $\n",
    ),
    (
        "filters of a folder",
        &[],
        "config filter.up.clean tr_a-z_A-Z|d/.gitattributes = * filter=up\n|d/e/f = a\n|f = a\n",
        "d/e/f = b\n|d/g = b\n|f = b\n|dd/f = b\n",
    ),
    (
        "filters of the index",
        &[],
        "config filter.up.clean tr_a-z_A-Z|.gitattributes = f filter=up\n|d/.gitattributes = f filter=up\n|f = a\n|d/f = a\n",
        "rm .gitattributes|f = b\n|rm d/.gitattributes|d/f = b\n",
    ),
    (
        "filters of a hidden file",
        &[],
        "config filter.up.clean tr_a-z_A-Z|.gitattributes = f filter=up\n|f = a\n",
        "update-index --skip-worktree .gitattributes|rm .gitattributes|f = b\n",
    ),
    (
        "autocrlf by the user",
        &[],
        "f = 1\r\n|g = 1\n",
        "config --global core.autocrlf true|f = 2\r\n|g = 2\r\n|h = 2\r\n|config core.safecrlf true",
    ),
    (
        "modes untracked",
        &[],
        "config core.fileMode false|f = 1\n|exec f|update-index --add --chmod=+x f|g = 1\n",
        "exec g|f = 2\n|h = 1\n|exec h",
    ),
    #[cfg(unix)]
    (
        "links",
        &[],
        "link l f|link m f|f = 1\n|d/g = 1\n",
        "link l g|rm m|m = 1\n|rm f|link f d|link n nowhere|link o d",
    ),
    #[cfg(unix)]
    ("link for a folder", &[], "d/g = 1\n|e/g = 1\n", "rm d|link d e"),
    #[cfg(unix)]
    ("link for a hidden folder", &[], "d/g = 1\n|e/g = 1\n", "update-index --skip-worktree d/g|rm d|link d e"),
    #[cfg(unix)]
    ("links of links", &[], "a/b/c/g = 1\n|e/c/g = 2\n|f = 1\n", "rm a/b|link a/b ../e|link h f/x|e/c/g = 3\n"),
    #[cfg(unix)]
    ("folder for a link", &[], "link d e|e/g = 1\n", "rm d|d/g = 2\n"),
    #[cfg(unix)]
    ("links untracked", &[], "link l f|f = 1\n", "config core.symlinks false|rm l|l = g"),
    #[cfg(unix)]
    ("modes", &[], "f = 1\n|g = 1\n|exec g", "exec f|plain g|h = 1\n|exec h"),
    #[cfg(unix)]
    ("names", &[], "a\\nb = 1\n", "a\\nb = 2\n|\" = 1\n|tab\there = 1\n|-x = 1\n|:(top) = 1\n|d/\\n = 1\n"),
    #[cfg(target_os = "linux")]
    ("names that are no text", &[], "\\xff\\xfe = 1\n", "\\xff\\xfe = 2\n|d\\xe4/f = 1\n"),
];

/// Undoes the escapes of a table.
fn bytes(text: &str) -> Vec<u8> {
    let text = text.replace("\\n", "\n").replace("\\0", "\0");
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}

fn path_in(world: &World, path: &str) -> PathBuf {
    #[cfg(unix)]
    let path: OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes(path));
    world.root().join(path)
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[cfg(unix)]
fn link(path: &Path, target: &str) {
    let _ = fs::remove_file(path);
    std::os::unix::fs::symlink(target, path).unwrap();
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn link(_path: &Path, _target: &str) {}

#[cfg(not(unix))]
fn set_mode(_path: &Path, _mode: u32) {}

/// Does what a line says, if it concerns the work tree.
fn perform(world: &World, line: &str) {
    if let Some((path, text)) = line.split_once(" = ") {
        return write(&path_in(world, path), &bytes(text));
    }
    let (verb, rest) = line.split_once(' ').unwrap();
    let path = path_in(world, rest);
    match verb {
        "rm" if path.is_dir() => fs::remove_dir_all(path).unwrap(),
        "rm" if !rest.starts_with('-') => fs::remove_file(path).unwrap(),
        "exec" => set_mode(&path, 0o755),
        "plain" => set_mode(&path, 0o644),
        "link" => rest.split_once(' ').map(|(path, target)| link(&path_in(world, path), target)).unwrap(),
        "wide" => {
            let (path, text) = rest.split_once(' ').unwrap();
            let units = ["\u{feff}", text].concat();
            write(&path_in(world, path), &units.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
        }
        "try" => drop(world.try_git(&rest.split(' ').collect::<Vec<_>>())),
        "in" | "first" => {}
        _ => {
            let arguments: Vec<String> = line.split(' ').map(|part| part.replace('_', " ")).collect();
            world.git(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

/// How the trees of squad and git differ, if they do.
fn difference((name, init, before, after): &Row) -> Option<String> {
    println!("{name}");
    let world = World::unborn(init);
    let lines = |script: &'static str| script.split('|').filter(|line| !line.is_empty());
    lines(before).for_each(|line| perform(&world, line));
    if !before.is_empty() {
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "first"]);
    }
    lines(after).for_each(|line| perform(&world, line));
    let after_verb = |verb: &str| lines(after).find_map(|line| line.strip_prefix(verb)?.strip_prefix(' '));
    let place = after_verb("in").unwrap_or_default();
    let first: Vec<&str> = after_verb("first").into_iter().flat_map(|line| line.split(' ')).collect();
    let theirs = tree_of(&world, place, &first);
    let index = world.root().join(".git/index");
    let untouched = fs::read(&index).ok();
    let repository = world.at(place);
    let snapshot = take(&repository, 1, None);
    let ours = world.git(&["rev-parse", &format!("{}^{{tree}}", snapshot.commit())]).trim().to_owned();
    assert_eq!(fs::read(&index).ok(), untouched, "{name}");
    assert_eq!(take(&repository, 2, Some(&snapshot)).commit(), snapshot.commit(), "{name}");
    if ours != theirs {
        return Some(format!("{name}: {:?}", expected(&world, &theirs, &ours)));
    }
    // A rescue has the same files, byte for byte as in the work tree.
    let paths = |tree: &str| world.git(&["ls-tree", "-r", "--name-only", "--full-tree", tree]);
    let rescued = paths(&save(&repository).commit());
    (rescued != paths(&ours)).then(|| format!("{name}, rescued: {rescued}"))
}

#[test]
fn a_snapshot_of_an_odd_repository_is_what_git_adds() {
    let different: Vec<String> = ROWS.iter().filter_map(difference).collect();
    assert!(different.is_empty(), "{different:#?}");
}

/// Each line end in the index, in each kind of work tree file, under each setting.
#[test]
fn line_ends_are_those_that_git_adds() {
    const ENDS: [&str; 4] = ["1\n2\n", "1\r\n2\r\n", "1\n2\r\n", "1\r\n\0"];
    for setting in ["true", "input", "false"] {
        let world = World::unborn(&[]);
        let write = |folder: &str, ends: &str| {
            for (from, indexed) in ENDS.iter().enumerate() {
                for (to, text) in ENDS.iter().enumerate() {
                    let text = if folder == "index" { indexed } else { text };
                    world.write(&format!("{from}-to-{to}"), &format!("{ends}{text}"));
                }
            }
        };
        write("index", "before ");
        world.git(&["add", "."]);
        world.git(&["commit", "-qm", "first"]);
        world.git(&["config", "core.autocrlf", setting]);
        write("work tree", "after ");
        let theirs = tree_of(&world, "", &[]);
        let ours = take(&world.repository(), 1, None).commit();
        let ours = world.git(&["rev-parse", &format!("{ours}^{{tree}}")]);
        assert_eq!(expected(&world, &theirs, ours.trim()), [""; 0], "{setting}");
    }
}
