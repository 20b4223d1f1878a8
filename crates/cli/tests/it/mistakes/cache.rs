//! A damaged cache heals by itself: it may be deleted at any time, so it may be anything.

use std::fs;
use std::path::Path;

use holdall_testkit::{CompareOptions, compare_trees};

use super::{Scene, Template, edit};
use crate::house::files_below;

/// What a file is turned into, and how.
type Damage = (&'static str, fn(&Path));

#[test]
fn whatever_is_in_the_cache_everything_works() {
    let template = Template::make();
    let damages: [Damage; 5] = [
        ("empty", |file| edit(file, Vec::clear)),
        ("cut", |file| edit(file, |bytes| bytes.truncate(bytes.len() / 2))),
        ("nonsense", |file| edit(file, |bytes| *bytes = b"nonsense".repeat(500))),
        ("flipped", super::flip),
        ("a folder", |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let scene = Scene::of(&template);
        scene.run("backup -r {repo} {source}").expect(0);
        let files = files_below(&scene.path("cache"));
        assert!(files.len() > 2, "{files:?}");
        files.iter().for_each(|file| damage(file));
        works(&scene, name);
    }
}

#[test]
fn a_cache_that_is_gone_is_made_again() {
    let scene = Scene::of(&Template::make());
    scene.run("backup -r {repo} {source}").expect(0);
    fs::remove_dir_all(scene.path("cache")).unwrap();
    works(&scene, "gone");
    for file in files_below(&scene.path("cache")) {
        fs::remove_file(file).unwrap();
    }
    works(&scene, "empty folders");
}

/// Backs up, lists and restores; `what` is what the cache is.
fn works(scene: &Scene, what: &str) {
    for command in [
        "ls -r {repo} latest {source}",
        "backup -r {repo} {source}",
        "check -r {repo} --scrub --verify all",
        "restore -r {repo} latest:{source} --target {target}",
    ] {
        let outcome = scene.run(command);
        assert_eq!(outcome.code, Some(0), "{what}: {command}\n{}", outcome.stderr);
    }
    let (source, target) = (scene.path("source"), scene.path("target"));
    assert_eq!(compare_trees(&source, &target, &CompareOptions::default()), [], "{what}");
    fs::remove_dir_all(target).unwrap();
}
