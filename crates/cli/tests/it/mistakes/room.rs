//! Full disks, on either side: small ones of memory, which only root may mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_testkit::Random;

use super::{Scene, Template, copy, tells};
use crate::house::{Machine, Server, files_below};

const ROOM: &str = "make room there, then try again";

/// A small disk; unmounted when dropped.
struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts one of so many MiB at a path; `None` where that is not allowed.
    fn mount(path: PathBuf, mib: u32) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let size = format!("size={mib}m");
        let mut command = Command::new("mount");
        let status = command.args(["-t", "tmpfs", "-o", &size, "none"]).arg(&path).output().ok()?;
        status.status.success().then_some(Self { path })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since a process that was killed may not be gone altogether.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// More than fits, in one file and in many.
fn much(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    let mut random = Random::new(9);
    fs::write(dir.join("large"), random.bytes(12 << 20)).unwrap();
    for number in 0..40 {
        fs::write(dir.join(number.to_string()), random.bytes(100_000)).unwrap();
    }
}

#[test]
fn a_repository_on_a_full_disk_keeps_what_it_has() {
    let scene = Scene::of(&Template::make());
    let Some(disk) = Disk::mount(scene.path("disk"), 8) else { return };
    copy(&[scene.path("repo")], &disk.path);
    much(&scene.path("much"));
    let told = scene.run("backup -r {here}/disk/repo {here}/much");
    tells(&told, 1, &scene.fill("{here}/disk/repo"), ROOM);
    assert!(files_below(&disk.path.join("repo/tmp")).is_empty());
    let listed = scene.run("snapshots -r {here}/disk/repo --json").expect(0);
    assert_eq!(listed.of_type("snapshot").len(), 1);
    scene.run("check -r {here}/disk/repo --verify all").expect(0);
    scene.run("restore -r {here}/disk/repo latest --target {target}").expect(0);
}

#[test]
fn a_target_on_a_full_disk() {
    let scene = Scene::of(&Template::make());
    let Some(disk) = Disk::mount(scene.path("disk"), 1) else { return };
    let told = scene.run("restore -r {repo} latest:{taken} --target {here}/disk/target");
    tells(&told, 1, "large.bin", ROOM);
    let left = files_below(&disk.path);
    assert!(left.iter().all(|file| !file.ends_with("large.bin")), "half a file: {left:?}");
}

#[test]
fn a_quota_that_is_reached() {
    let machine = Machine::new().with_password(None);
    let data = machine.path("data");
    let server = Server::start(&data);
    machine.pair_with(&server);
    let source = machine.path("source");
    much(&source);
    let source = source.to_str().unwrap();
    let name = machine.administer(&data, &["repositories"]).objects()[0]["name"].clone();
    machine.administer(&data, &["quota", name.as_str().unwrap(), "3M"]).expect(0);
    let told = machine.run(["backup", source]);
    tells(
        &told,
        13,
        "the quota of this repository is 3.0 MB;",
        &format!("`holdall admin quota {} SIZE`", name.as_str().unwrap()),
    );
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 0);
    // What fits goes in.
    machine.ok(["backup", &format!("{source}/1")]);
}

#[test]
fn a_server_on_a_full_disk_says_so_and_goes_on() {
    let machine = Machine::new().with_password(None);
    let Some(disk) = Disk::mount(machine.path("disk"), 10) else { return };
    let filler = disk.path.join("filler");
    fs::write(&filler, [0; 1 << 20]).unwrap();
    let server = Server::start(&disk.path.join("data"));
    machine.pair_with(&server);
    let source = machine.path("source");
    much(&source);
    let source = source.to_str().unwrap();
    tells(&machine.run(["backup", source, "--retry-for", "1s"]), 1, "no room is left", ROOM);
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 0);
    fs::remove_file(filler).unwrap();
    machine.ok(["backup", &format!("{source}/1")]);
    assert_eq!(machine.ok(["snapshots", "--json"]).of_type("snapshot").len(), 1);
}
