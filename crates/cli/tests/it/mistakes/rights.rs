//! What the system does not allow an ordinary user, and whom somebody else is in the way of.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use super::{BACKED_UP, Row, Scene, Template, hold, tells};
use crate::house::is_root;

/// Nobody, who owns nothing.
const NOBODY: u32 = 65534;
const BY_NOBODY: &[&str] =
    &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
const OWNER: &str = "see who owns it";

/// Runs the command as nobody, whose state and cache they are, and nothing else.
fn as_nobody(scene: &mut Scene) {
    scene.by = BY_NOBODY;
    mode(scene, "", 0o755);
    ["config", "cache", "tmp"].iter().for_each(|name| give(scene, name));
}

/// The same, and the repository is theirs.
fn with_repository(scene: &mut Scene) {
    as_nobody(scene);
    give(scene, "repo");
}

fn give(scene: &Scene, name: &str) {
    change(scene, name, "chown", &format!("{NOBODY}:{NOBODY}"));
}

fn change(scene: &Scene, name: &str, program: &str, how: &str) {
    let mut command = Command::new(program);
    assert!(command.args(["-R", how]).arg(scene.path(name)).status().unwrap().success());
}

fn mode(scene: &Scene, name: &str, mode: u32) {
    fs::set_permissions(scene.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn an_ordinary_user() {
    if !is_root("what an ordinary user may not do") {
        return;
    }
    hold(&[
        Row {
            name: "a repository of somebody else",
            set_up: |scene| {
                as_nobody(scene);
                mode(scene, "repo", 0o700);
            },
            command: "snapshots -r {repo}",
            code: 1,
            names: "{repo}",
            advises: OWNER,
            leaves: &[],
        },
        Row {
            name: "a repository that may only be read",
            set_up: |scene| {
                as_nobody(scene);
                change(scene, "repo", "chmod", "a+rX,a-w");
            },
            command: "backup -r {repo} {source}",
            code: 1,
            names: "{repo}",
            advises: OWNER,
            leaves: &[],
        },
        Row {
            name: "a place where nothing may be made",
            set_up: |scene| {
                as_nobody(scene);
                scene.env.push(("HOLDALL_PASSWORD", "correct horse".into()));
                fs::create_dir(scene.path("mine")).unwrap();
                chown(scene.path("mine"), Some(NOBODY), None).unwrap();
            },
            command: "init -r {here}/new --recovery-kit {here}/mine/kit",
            code: 1,
            names: "{here}/new",
            advises: OWNER,
            leaves: &[],
        },
        Row {
            name: "a configuration of somebody else",
            set_up: |scene| {
                as_nobody(scene);
                fs::write(scene.path("config/config.toml"), "").unwrap();
                mode(scene, "config/config.toml", 0o600);
            },
            command: "snapshots -r {repo}",
            code: 1,
            names: "{here}/config/config.toml",
            advises: "Permission denied",
            leaves: &[],
        },
        Row {
            name: "an identity of somebody else",
            set_up: |scene| {
                as_nobody(scene);
                chown(scene.path("config/state/identity.json"), Some(0), Some(0)).unwrap();
            },
            command: "snapshots -r {repo}",
            code: 1,
            names: "{here}/config/state/identity.json",
            advises: OWNER,
            leaves: &[],
        },
        Row {
            name: "a target of somebody else",
            set_up: with_repository,
            command: "restore -r {repo} latest --target {target}",
            code: 1,
            names: "{target}",
            advises: "ermission denied",
            leaves: &["repo/sessions"],
        },
        Row {
            name: "a file that may not be read",
            set_up: |scene| {
                with_repository(scene);
                mode(scene, "source/large.bin", 0o600);
            },
            command: "backup -r {repo} {source}",
            code: 3,
            names: "{source}/large.bin",
            advises: "1 had a problem",
            leaves: BACKED_UP,
        },
        Row {
            name: "patterns that may not be read",
            set_up: |scene| {
                with_repository(scene);
                fs::write(scene.path("source/.holdallignore"), "*.o\n").unwrap();
                mode(scene, "source/.holdallignore", 0o600);
            },
            command: "backup -r {repo} {source}",
            code: 3,
            names: "{source}: .holdallignore: Permission denied",
            advises: "2 had a problem",
            leaves: BACKED_UP,
        },
    ]);
}

#[test]
fn two_at_once() {
    let scene = Scene::of(&Template::make());
    let lock = fs::File::options().write(true).open(scene.path("repo/lock")).unwrap();
    lock.lock().unwrap();
    for command in ["backup -r {repo} {source}", "check -r {repo}"] {
        let outcome = scene.run(command);
        tells(&outcome, 11, &scene.fill("{repo} is in use"), "try again when it is done");
    }
    // Listing needs no lease.
    scene.run("snapshots -r {repo}").expect(0);
    // Not by closing it: a process that another test is just starting may have it open, too.
    lock.unlock().unwrap();
    scene.run("backup -r {repo} {source}").expect(0);
}
