//! Everything of a computer comes back by one command, though it backs up several sets of paths.

use std::fs;
use std::path::{Path, PathBuf};

use crate::house::{Machine, Server, text};

const GUIDE: &str = include_str!("../../../../docs/guide.md");

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// What stands in a file that was restored below a target.
fn read(target: &Path, path: &Path) -> Option<String> {
    fs::read_to_string(target.join(path.strip_prefix("/").unwrap())).ok()
}

struct House {
    machine: Machine,
    repo: String,
    home: PathBuf,
    etc: PathBuf,
}

impl House {
    fn new() -> Self {
        let machine = Machine::new();
        let [home, etc] = ["top/home", "top/etc"].map(|name| machine.path(name));
        write(&home.join("ada/will.odt"), "first");
        write(&home.join("ada/docs/old"), "old");
        write(&etc.join("hosts"), "hosts");
        let repo = text(&machine.path("repo")).to_owned();
        machine.init(&["-r", &repo]);
        Self { machine, repo, home, etc }
    }

    fn back_up(&self, path: &Path) {
        self.machine.ok(["backup", "-r", &self.repo, text(path)]);
    }
}

#[test]
fn the_newest_snapshot_of_each_set_of_paths_comes_back_and_newer_ones_count() {
    let house = House::new();
    let House { machine, repo, home, etc } = &house;
    let ada = home.join("ada");
    // Everything of it is in a newer snapshot.
    house.back_up(&ada.join("will.odt"));
    house.back_up(home);
    house.back_up(etc);
    // Of these, only the newest one of the folder knows what was deleted.
    fs::remove_file(ada.join("docs/old")).unwrap();
    write(&ada.join("docs/new"), "new");
    write(&ada.join("will.odt"), "not backed up any more");
    house.back_up(&ada.join("docs"));

    let target = machine.path("target");
    let args = ["restore", "-r", repo, "--all-series", "--target", text(&target)];
    let dry = machine.ok([&args[..], &["-n"]].concat());
    assert!(dry.stdout.contains("4 snapshots would be restored") && !target.exists(), "{dry:?}");
    let said = machine.ok(args);
    let restored = |path: &Path| read(&target, path);
    assert_eq!(restored(&etc.join("hosts")).as_deref(), Some("hosts"));
    assert_eq!(restored(&ada.join("will.odt")).as_deref(), Some("first"));
    assert_eq!(restored(&ada.join("docs/new")).as_deref(), Some("new"));
    // It may have been left out by a rule, too.
    assert_eq!(restored(&ada.join("docs/old")).as_deref(), Some("old"));
    let (docs, will) = (ada.join("docs"), ada.join("will.odt"));
    let is_said =
        |what: &Path| said.stderr.contains(&format!("{} is in two snapshots", text(what)));
    assert!(is_said(&docs) && is_said(home) && !is_said(etc), "{}", said.stderr);
    assert!(said.stdout.contains("4 snapshots restored below"), "{}", said.stdout);

    // A target that holds something is no place for it, unless that is said.
    machine.run(args).expect(1);
    let again = machine.ok([&args[..], &["--overwrite", "always", "--json"]].concat());
    assert_eq!(again.of_type("summary").len(), 4);
    assert_eq!(restored(&ada.join("docs/new")).as_deref(), Some("new"));
    let only = machine.path("only");
    machine.ok(["restore", "-r", repo, "--all-series", text(&only), "--include", "hosts"]);
    assert_eq!(read(&only, &etc.join("hosts")).as_deref(), Some("hosts"));
    assert_eq!(read(&only, &will), None);
    let none = machine.path("none");
    let nothing =
        ["restore", "-r", repo, "latest", text(&none), "--all-series", "--include", "nix"];
    machine.run(nothing).expect(1);
    assert!(!none.exists());
}

#[test]
fn what_a_newer_snapshot_left_out_comes_from_the_older_one() {
    let House { machine, repo, home, .. } = House::new();
    let (ada, docs) = (home.join("ada"), home.join("ada/docs"));
    machine.ok(["backup", "-r", &repo, text(&ada)]);
    write(&ada.join("will.odt"), "second will");
    machine.ok(["backup", "-r", &repo, text(&home), "--exclude", text(&docs)]);
    for more in [&[][..], &["--overwrite", "always"]] {
        let target = machine.path("target");
        let args = ["restore", "-r", &repo, "--all-series", "--target", text(&target)];
        machine.ok([&args[..], more].concat());
        assert_eq!(read(&target, &docs.join("old")).as_deref(), Some("old"));
        assert_eq!(read(&target, &ada.join("will.odt")).as_deref(), Some("second will"));
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_source_that_a_snapshot_lacks_is_told() {
    let House { machine, repo, home, etc } = House::new();
    let back_up = ["backup", "-r", &repo, text(&home), text(&etc)];
    machine.ok(back_up);
    fs::remove_dir_all(&etc).unwrap();
    machine.run(back_up).expect(3);
    let [one, all] = ["one", "all"].map(|name| machine.path(name));
    for args in [&["latest", text(&one)][..], &["--all-series", text(&all)]] {
        let told = machine.run([&["restore", "-r", &repo], args].concat()).expect(3);
        let lacks = format!("{} is not in this snapshot", text(&etc));
        assert!(told.stderr.contains(&lacks), "{}", told.stderr);
        assert!(told.stdout.contains("1 could not be restored"), "{}", told.stdout);
    }
    // Somebody who leaves it out misses nothing.
    let without = machine.path("without");
    let args = ["restore", "-r", &repo, "latest", text(&without), "--include", text(&home)];
    machine.ok(args);
}

#[test]
fn all_series_wants_a_target_and_no_snapshot() {
    let house = House::new();
    house.back_up(&house.etc);
    let target = text(&house.machine.path("target")).to_owned();
    let run = |args: &[&str]| {
        house.machine.run([&["restore", "-r", &house.repo, "--all-series"], args].concat())
    };
    for (args, hint) in [(&[][..], "--target DIR"), (&["1f3a", "--target", &target], "--machine")] {
        let said = run(args).expect(2).stderr;
        assert!(said.contains(hint), "{said}");
    }
    run(&["latest", &target]).expect(0);
}

/// The commands of a section of the guide, as they stand there.
fn commands_of(heading: &str) -> Vec<&'static str> {
    let (_, section) = GUIDE.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let (_, block) = section.split_once("```sh\n").expect("commands");
    let (block, _) = block.split_once("```").expect("an end");
    block.lines().map(|line| line.split('#').next().unwrap().trim()).collect()
}

#[test]
fn a_whole_computer_comes_back_as_the_guide_says() {
    let House { machine, home, etc, .. } = House::new();
    let machine = machine.with_password(None);
    let server = Server::start(&machine.path("data"));
    machine.ok(["pair", &server.invite(), "--write-kit", text(&machine.path("kit.txt"))]);
    for path in [&home, &etc] {
        machine.ok(["backup", text(path)]);
    }
    // A new disk has that on it, and another disk is mounted where it belongs.
    let (new, disk) = (Machine::new().with_password(None), machine.path("new"));
    fs::create_dir_all(disk.join("lost+found")).unwrap();
    fs::create_dir_all(disk.join(home.strip_prefix("/").unwrap())).unwrap();
    let commands = commands_of("### A whole computer");
    assert!(commands.len() > 1, "{commands:?}");
    for command in commands {
        let words = command.split(' ').skip_while(|word| *word == "sudo").map(|word| match word {
            "kit.txt" => text(&machine.path("kit.txt")).to_owned(),
            "/mnt/new" => text(&disk).to_owned(),
            word => word.to_owned(),
        });
        new.ok(words.skip(1));
    }
    assert_eq!(read(&disk, &home.join("ada/docs/old")).as_deref(), Some("old"));
    assert_eq!(read(&disk, &etc.join("hosts")).as_deref(), Some("hosts"));
    assert!(disk.join("lost+found").exists());
}
