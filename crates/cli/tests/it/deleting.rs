//! `restore --delete` makes a folder as it was: what the snapshot has not is listed, and goes when everything is restored.
//! Nothing else does.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::Random;

use crate::house::{Machine, Outcome, files_below, is_root, text};
use crate::mounts::Mount;
use crate::repair::flip;

pub(crate) const ALWAYS: [&str; 3] = ["--delete", "--overwrite", "always"];

/// A machine with a repository, and a snapshot of a folder in another one.
pub(crate) struct Home {
    pub(crate) machine: Machine,
    pub(crate) repo: PathBuf,
    pub(crate) home: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let machine = Machine::new();
        let (home, repo) = (machine.path("all/home"), machine.path("repo"));
        fs::create_dir_all(home.join("letters/old")).unwrap();
        fs::write(home.join("letters/will.odt"), "first").unwrap();
        fs::write(home.join("letters/old/note"), "old note").unwrap();
        fs::write(home.join("letters.txt"), "a sibling").unwrap();
        machine.init(&["-r", text(&repo)]);
        machine.ok(["backup", "-r", text(&repo), text(&home)]);
        Self { machine, repo, home }
    }

    /// Restores the folder where it was.
    pub(crate) fn restore(&self, more: &[&str]) -> Outcome {
        Outcome::of(&mut self.command(more))
    }

    /// The command that does.
    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let what = format!("latest:{}", self.home.display());
        let args = [&["restore", &*what, "-r", text(&self.repo)], &ALWAYS[..], more].concat();
        self.machine.command(&args)
    }

    /// Takes the snapshot anew.
    pub(crate) fn back_up(&self) {
        self.machine.ok(["backup", "-r", text(&self.repo), text(&self.home)]);
    }

    /// One whose restore takes a while, since a large file is gone.
    pub(crate) fn with_large() -> Self {
        let home = Self::new();
        fs::write(home.large(), Random::new(1).bytes(64 << 20)).unwrap();
        home.back_up();
        fs::remove_file(home.large()).unwrap();
        home
    }

    fn large(&self) -> PathBuf {
        self.home.join("large")
    }

    /// Restores the folder of one with a large file where it was, and does something once all is listed and before
    /// anything is deleted.
    pub(crate) fn restore_and_meanwhile(&self, meanwhile: impl FnOnce()) -> Outcome {
        let process = holdall_testkit::Process::spawn(&mut self.command(&["--json"])).unwrap();
        // It restores by then, so that all is listed.
        let begun = std::time::Instant::now();
        while !self.large().exists() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        meanwhile();
        Outcome::of_process(process)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let files = files_below(&self.home).into_iter();
        let below = |file: PathBuf| text(file.strip_prefix(&self.home).unwrap()).to_owned();
        let mut files: Vec<_> = files.map(below).collect();
        files.sort();
        files
    }
}

pub(crate) const BEFORE: [&str; 3] = ["letters.txt", "letters/old/note", "letters/will.odt"];

/// Puts things there that no snapshot has.
fn add_more(home: &Path, outside: &Path) {
    fs::create_dir_all(home.join("cache/deep/er")).unwrap();
    fs::write(home.join("cache/deep/er/file"), "extra").unwrap();
    fs::write(home.join("letters/old/a"), "extra").unwrap();
    fs::write(home.join("letters/zz"), "extra").unwrap();
    fs::create_dir(outside).unwrap();
    fs::write(outside.join("mine"), "mine").unwrap();
    symlink(outside, home.join("link")).unwrap();
    symlink(outside, home.join("cache/link")).unwrap();
}

#[test]
fn what_the_snapshot_has_not_is_listed_first_and_deleted_and_no_link_is_followed() {
    let home = Home::new();
    let outside = home.machine.path("outside");
    add_more(&home.home, &outside);
    fs::write(home.home.join("letters/will.odt"), "changed").unwrap();
    let with_more = home.files();

    let said = home.restore(&["--dry-run"]).expect(0).stdout;
    let listed =
        |what: &str| said.contains(&format!("would delete {}/{what}", home.home.display()));
    for extra in ["cache, with all that is in it", "letters/old/a\n", "letters/zz\n", "link\n"] {
        assert!(listed(extra), "{extra}: {said}");
    }
    assert_eq!(said.matches("would delete").count(), 4, "{said}");
    assert_eq!(home.files(), with_more);

    let outcome = home.restore(&["--json"]).expect(0);
    assert_eq!(outcome.of_type("delete").len(), 4);
    // The folder's four, with itself; two files and a link beside it.
    assert_eq!(outcome.summary()["deleted"], 8, "{}", outcome.stdout);
    assert_eq!(home.files(), BEFORE);
    assert!(
        !home.home.join("cache").exists() && home.home.join("link").symlink_metadata().is_err()
    );
    assert_eq!(fs::read(home.home.join("letters/will.odt")).unwrap(), b"first");
    assert_eq!(fs::read(outside.join("mine")).unwrap(), b"mine");
    let again = home.restore(&["--json"]).expect(0);
    assert_eq!((again.of_type("delete").len(), &again.summary()["deleted"]), (0, &0.into()));
}

#[test]
fn beside_what_was_backed_up_nothing_is_deleted() {
    let home = Home::new();
    let target = home.machine.path("target");
    let restored = target.join(home.home.strip_prefix("/").unwrap());
    let restore = || {
        let args = ["restore", "latest", "-r", text(&home.repo), "--target", text(&target)];
        home.machine.ok([&args[..], &ALWAYS].concat())
    };
    restore();
    let (above, beside) = (target.join("mine"), restored.parent().unwrap().join("mine"));
    let within = restored.join("extra");
    [&above, &beside, &within].into_iter().for_each(|file| fs::write(file, "mine").unwrap());
    restore();
    assert!(above.exists() && beside.exists() && !within.exists());
}

#[test]
fn what_is_left_out_stays_with_the_folders_that_it_is_in() {
    let home = Home::new();
    fs::create_dir_all(home.home.join("new/deep")).unwrap();
    fs::write(home.home.join("new/deep/a.keep"), "mine").unwrap();
    fs::write(home.home.join("new/deep/b"), "extra").unwrap();
    fs::write(home.home.join("c.keep"), "mine").unwrap();
    home.restore(&["--exclude", "*.keep"]).expect(0);
    let mut kept = BEFORE.to_vec();
    kept.extend(["c.keep", "new/deep/a.keep"]);
    kept.sort_unstable();
    assert_eq!(home.files(), kept);
}

#[test]
fn another_file_system_stays_as_it_is_and_so_does_what_is_bound_there() {
    let home = Home::new();
    let Some(disk) = Mount::in_memory(&home.home.join("disk"), 1 << 20) else { return };
    fs::write(disk.point().join("mine"), "mine").unwrap();
    let elsewhere = home.machine.path("elsewhere");
    let bound = home.home.join("letters/old/bound");
    [&elsewhere, &bound].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    fs::write(elsewhere.join("mine"), "mine").unwrap();
    let mounted = Command::new("mount").arg("--bind").args([&elsewhere, &bound]).status().unwrap();
    assert!(mounted.success());
    let outcome = home.restore(&[]);
    let unmounted = Command::new("umount").arg(&bound).status().unwrap();
    let outcome = outcome.expect(0);
    assert!(unmounted.success());
    assert_eq!(
        outcome.stderr.matches("it is another file system").count(),
        2,
        "{}",
        outcome.stderr
    );
    assert!(disk.point().join("mine").exists() && elsewhere.join("mine").exists());
}

#[test]
fn nothing_is_deleted_where_not_everything_could_be_restored() {
    let home = Home::new();
    fs::write(home.home.join("large"), Random::new(1).bytes(3 << 20)).unwrap();
    home.machine.ok(["backup", "-r", text(&home.repo), text(&home.home)]);
    let packs = files_below(&home.repo.join("packs")).into_iter();
    let stored = packs.chain(files_below(&home.repo.join("tails")));
    let largest = stored.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    let middle = fs::metadata(&largest).unwrap().len() as usize / 2;
    flip(&largest, middle);
    fs::write(home.home.join("large"), "changed").unwrap();
    fs::write(home.home.join("extra"), "extra").unwrap();
    let outcome = home.restore(&[]).expect(20);
    assert!(outcome.stderr.contains("nothing was deleted"), "{}", outcome.stderr);
    assert!(home.home.join("extra").exists());
}

#[test]
fn a_snapshot_that_lacks_what_could_not_be_read_deletes_nothing() {
    const AS_NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !is_root("have a folder that cannot be read") {
        return;
    }
    let home = Home::new();
    let closed = home.home.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("mine"), "mine").unwrap();
    let top = home.machine.path("");
    let given = Command::new("chown").args(["-R", "-h", "65534:65534"]).arg(&top).status().unwrap();
    assert!(given.success());
    let taken = Command::new("chown").arg("0:0").arg(&closed).status().unwrap();
    let kept = Command::new("chmod").arg("700").arg(&closed).status().unwrap();
    assert!(taken.success() && kept.success());
    let backup = ["backup", "-r", text(&home.repo), text(&home.home)];
    home.machine.run_by(&AS_NOBODY, backup).expect(3);
    let refused = home.restore(&[]).expect(1).stderr;
    assert!(refused.contains("could not be read when this snapshot was made"), "{refused}");
    assert!(closed.join("mine").exists());
}

#[test]
fn without_a_word_on_overwriting_or_for_a_single_file_it_is_refused() {
    let home = Home::new();
    let what = format!("latest:{}", home.home.display());
    let restore = |what: &str, more: &[&str]| {
        home.machine.run([&["restore", what, "-r", text(&home.repo), "--delete"], more].concat())
    };
    restore(&what, &[]).expect(2);
    let file = format!("{what}/letters.txt");
    let refused = restore(&file, &["--overwrite", "always"]).expect(2).stderr;
    assert!(refused.contains("no folder"), "{refused}");
}

#[test]
fn repositories_and_what_holdall_keeps_stay_wherever_they_are() {
    let home = Home::new();
    let own = home.home.join("own");
    fs::create_dir_all(own.join("state")).unwrap();
    fs::write(own.join("state/machine"), "as it was").unwrap();
    home.machine.ok(["backup", "-r", text(&home.repo), text(&home.home)]);
    // One that is older than the snapshot would be left out of it; these came since.
    let (other, begun) = (home.home.join("disk/other"), home.home.join("letters/old"));
    home.machine.init(&["-r", text(&other)]);
    fs::write(begun.join("holdall-repository"), "as one that was begun in a folder").unwrap();
    fs::create_dir_all(own.join("state/keys")).unwrap();
    let (cache, cached) = (home.home.join("disk/cache"), home.home.join("disk/cache/file"));
    fs::create_dir(&cache).unwrap();
    fs::write(&cached, "cached").unwrap();
    fs::write(own.join("state/keys/key"), "precious").unwrap();
    fs::write(home.home.join("disk/extra"), "extra").unwrap();
    let what = format!("latest:{}", home.home.display());
    let args = [&["restore", &*what, "-r", text(&home.repo)], &ALWAYS[..]].concat();
    let mut command = home.machine.command(&args);
    command.env("HOLDALL_CONFIG_DIR", &own).env("HOLDALL_CACHE_DIR", &cache);
    let outcome = Outcome::of(&mut command).expect(0);
    assert!(outcome.stdout.contains("to delete: "), "{}", outcome.stdout);
    assert_eq!(outcome.stderr.matches("is a repository").count(), 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("holdall's own"), "{}", outcome.stderr);
    assert!(
        own.join("state/keys/key").exists()
            && cached.exists()
            && other.join("holdall-repository").exists()
    );
    assert!(begun.join("holdall-repository").exists() && !home.home.join("disk/extra").exists());
}

#[test]
fn what_a_file_system_takes_for_the_same_name_is_not_deleted() {
    let home = Home::new();
    fs::write(home.home.join("letters/Readme"), "first").unwrap();
    home.machine.ok(["backup", "-r", text(&home.repo), text(&home.home)]);
    let Some((mount, _process)) = Mount::folding(&home.machine.path("folding")) else { return };
    let target = mount.point().join("target");
    fs::create_dir_all(target.join("LETTERS/OLD")).unwrap();
    fs::write(target.join("LETTERS/README"), "older").unwrap();
    fs::write(target.join("LETTERS/extra"), "extra").unwrap();
    let what = format!("latest:{}", home.home.display());
    let restore = ["restore", &*what, "-r", text(&home.repo), "--target", text(&target)];
    let outcome = home.machine.run([&restore[..], &ALWAYS].concat());
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    for kept in ["letters/will.odt", "letters/old/note", "letters/readme"] {
        assert!(target.join(kept).exists(), "{kept}: {said}");
    }
    assert!(!target.join("letters/extra").exists(), "{said}");
    assert_eq!(said.matches("to delete: ").count(), 1, "{said}");
}
