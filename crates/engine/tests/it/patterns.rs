//! What is left out, against git itself.
//!
//! Trees and pattern files are made up from seeds. Each case has a folder of its own, with the same
//! lines as `.holdallignore` for us and as `.gitignore` for git.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdall_engine::{Patterns, Run, list};
use holdall_testkit::Random;

use crate::world::{World, newest, write};

/// Trees with pattern files.
const CASES: u64 = 300;
/// Lists of patterns for one tree: each asks git once.
const LISTS: u64 = 120;

/// Names with everything that means something in a pattern, and bytes that are no text.
const NAMES: [&[u8]; 18] = [
    b"a",
    b"b",
    b"ab",
    b"abc",
    b"aXb",
    b"a.o",
    b"b.txt",
    b"#a",
    b"!a",
    b" a",
    b"a ",
    b"[a]",
    b"{a,b}",
    b"a*",
    b"a\\",
    b"?",
    b"\xc3\xa4",
    b"\xff",
];

/// What patterns are made of.
const PIECES: [&[u8]; 34] = [
    b"a",
    b"b",
    b"ab",
    b"X",
    b".o",
    b".txt",
    b"*",
    b"*",
    b"?",
    b"/",
    b"/",
    b"/",
    b"**/",
    b"/**",
    b"**",
    b"[ab]",
    b"[!a]",
    b"[^b-c]",
    b"[a-c]",
    b"[]a]",
    b"[[:alpha:]]",
    b"[a[:upper:]]",
    b"[\\]a]",
    b"[a/]",
    b"{a,b}",
    b"\\*",
    b"\\a",
    b"\\ ",
    b" ",
    b"#",
    b"!",
    b"\\\\",
    b"\xc3\xa4",
    b"\xff",
];

/// A line of a pattern file.
fn line(random: &mut Random) -> Vec<u8> {
    let mut line = match random.below(8) {
        0 => b"!".to_vec(),
        1 => b"/".to_vec(),
        2 => b"\\#".to_vec(),
        3 => b"\\!".to_vec(),
        _ => Vec::new(),
    };
    for _ in 0..=random.below(4) {
        line.extend_from_slice(PIECES[random.index(PIECES.len())]);
    }
    match random.below(12) {
        0..=1 => line.push(b'/'),
        2 => line.push(b' '),
        3 => line.push(b'\r'),
        _ => {}
    }
    line
}

/// The one thing that git does against its documentation: `**` after letters in one component, when
/// nothing special stands before it.
fn is_gits_own(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"!").unwrap_or(line);
    let line = line.strip_prefix(b"/").unwrap_or(line);
    let literal = line.iter().take_while(|byte| !b"*?[\\".contains(byte)).count();
    literal > 0 && line[literal - 1] != b'/' && line[literal..].starts_with(b"**")
}

fn lines(random: &mut Random) -> Vec<u8> {
    let lines = (0..=random.below(3)).map(|_| line(random)).filter(|line| !is_gits_own(line));
    lines.flat_map(|line| [&line[..], b"\n"].concat()).collect()
}

/// Makes some files and directories in `dir`, and pattern files in some of the directories.
fn make_tree(random: &mut Random, dir: &Path, depth: u32) {
    if depth == 0 || random.one_in(3) {
        let lines = lines(random);
        write(&dir.join(".holdallignore"), &lines);
        write(&dir.join(".gitignore"), &lines);
    }
    for _ in 0..4 {
        let path = dir.join(OsStr::from_bytes(NAMES[random.index(NAMES.len())]));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match random.below(5) {
            0..=3 if depth < 3 => {
                fs::create_dir(&path).unwrap();
                make_tree(random, &path, depth + 1);
            }
            4 => std::os::unix::fs::symlink("a", &path).unwrap(),
            _ => write(&path, b"content"),
        }
    }
}

/// All paths below `dir` but the pattern files, relative to it.
fn paths_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            if ![".holdallignore", ".gitignore"].map(OsString::from).contains(&entry.file_name()) {
                found.push(entry.path().strip_prefix(dir).unwrap().to_owned());
            }
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// git with a repository of its own, whose work tree is `top`.
struct Git {
    folder: PathBuf,
    top: PathBuf,
}

impl Git {
    fn new(folder: PathBuf, top: &Path) -> Self {
        let git = Self { folder, top: top.to_owned() };
        let made = git.command(&[]).args(["init", "-q"]).output().expect("git is installed");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        git
    }

    fn command(&self, settings: &[&str]) -> Command {
        let mut command = Command::new("git");
        for setting in ["core.excludesFile=", "core.ignoreCase=false"].iter().chain(settings) {
            command.args(["-c", setting]);
        }
        command.env("GIT_DIR", &self.folder).env("GIT_WORK_TREE", &self.top).current_dir(&self.top);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }

    /// What git ignores of these paths.
    fn ignored(&self, settings: &[&str], paths: &[PathBuf]) -> BTreeSet<PathBuf> {
        let mut command = self.command(settings);
        command.args(["check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        let mut stdin = running.stdin.take().unwrap();
        let asked: Vec<u8> =
            paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        let asking = std::thread::spawn(move || stdin.write_all(&asked));
        let output = running.wait_with_output().unwrap();
        asking.join().unwrap().unwrap();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{output:?}");
        let fields: Vec<&[u8]> = output.stdout.split(|&byte| byte == 0).collect();
        let rows = fields.chunks_exact(4);
        let ignored = rows.filter(|row| !row[2].is_empty() && !row[2].starts_with(b"!"));
        ignored.map(|row| PathBuf::from(OsString::from_vec(row[3].to_vec()))).collect()
    }
}

#[track_caller]
fn assert_same(top: &Path, git: &BTreeSet<PathBuf>, ours: &BTreeSet<PathBuf>) {
    let Some(path) = git.symmetric_difference(ours).next() else { return };
    let who =
        if git.contains(path) { "git leaves it out, we do not" } else { "only we leave it out" };
    let mut said = format!("{path:?}: {who}\n");
    for folder in path.ancestors().skip(1) {
        if let Ok(lines) = fs::read(top.join(folder).join(".gitignore")) {
            said += &format!("{folder:?}: {}\n", lines.escape_ascii());
        }
    }
    panic!("{said}");
}

#[test]
fn pattern_files_leave_out_what_they_leave_out_of_git() {
    let world = World::new();
    let top = world.source();
    for seed in 0..CASES {
        let case = top.join(format!("case-{seed}"));
        fs::create_dir(&case).unwrap();
        make_tree(&mut Random::new(seed), &case, 0);
    }
    let paths = paths_below(&top);
    let git = Git::new(world.path("git"), &top).ignored(&[], &paths);
    assert!(git.len() > 500 && git.len() < paths.len() - 500, "{} of {}", git.len(), paths.len());

    // Lines that we refuse and git never matches are told.
    let run = std::sync::Arc::new(Run::new());
    holdall_engine::backup(&world.access(), &world.options(), &run).unwrap();
    for problem in run.take_problems() {
        assert!(problem.reason.starts_with(".holdallignore: line "), "{problem:?}");
    }
    let mut ours: BTreeSet<PathBuf> = paths.into_iter().collect();
    let snapshot = newest(&world.access(), None);
    list(&world.access(), &snapshot, top.as_os_str().as_bytes(), true, &Run::new(), &mut |entry| {
        let path = Path::new(OsStr::from_bytes(entry.path));
        ours.remove(path.strip_prefix(&top).unwrap());
        Ok(())
    })
    .unwrap();
    assert_same(&top, &git, &ours);
}

/// What patterns of the command line leave out of `paths`, going down as a backup does.
fn left_out(top: &Path, patterns: &Patterns, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut left_out = BTreeSet::new();
    for path in paths {
        let absolute = [b"/", path.as_os_str().as_bytes()].concat();
        let is_dir = top.join(path).symlink_metadata().unwrap().is_dir();
        let above = path.parent().is_some_and(|parent| left_out.contains(parent));
        if above || patterns.says(&absolute, is_dir) == Some(true) {
            left_out.insert(path.clone());
        }
    }
    left_out
}

#[test]
fn patterns_of_the_command_line_leave_out_what_gits_do_with_and_without_regard_to_case() {
    let world = World::new();
    let (top, file) = (world.source(), world.path("patterns"));
    for dir in ["a/b/ab", "b/a/{a,b}"] {
        fs::create_dir_all(top.join(dir)).unwrap();
    }
    for dir in ["a", "a/b", "a/b/ab", "b/a", "b/a/{a,b}"] {
        for name in NAMES {
            let path = top.join(dir).join(OsStr::from_bytes(name));
            if path.symlink_metadata().is_err() {
                write(&path, b"content");
            }
        }
    }
    let paths = paths_below(&top);
    let git = Git::new(world.path("git"), &top);
    let setting = format!("core.excludesFile={}", file.display());
    for seed in 0..LISTS {
        let lines = lines(&mut Random::new(1_000_000 + seed));
        write(&file, &lines);
        let any_case = seed % 2 == 0;
        let case = format!("core.ignoreCase={any_case}");
        let git = git.ignored(&[&setting, &case], &paths);
        let mut patterns = Patterns::below(b"/");
        patterns.add_file(&lines, any_case);
        let ours = left_out(&top, &patterns, &paths);
        assert_eq!(git, ours, "seed {seed}, any case {any_case}: {}", lines.escape_ascii());
    }
}
