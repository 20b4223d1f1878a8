//! Which snapshot `latest` is of a path: the newest that has it.

use std::fs;

use crate::house::{Machine, text};

#[test]
fn latest_of_a_path_is_the_newest_that_has_it_and_not_the_newest_that_should() {
    let machine = Machine::new();
    let [repo, disk, home] = ["repo", "disk", "home"].map(|name| machine.path(name));
    let [repo, disk, home] = [&repo, &disk, &home].map(|path| text(path));
    machine.init(&["-r", repo]);
    for (folder, content) in [(disk, "photo"), (home, "letter")] {
        fs::create_dir(folder).unwrap();
        fs::write(format!("{folder}/file"), content).unwrap();
    }
    let args = ["backup", "-r", repo, disk, home];
    machine.ok(args);
    fs::rename(disk, machine.path("away")).unwrap();
    machine.run(args).expect(3);
    fs::remove_file(format!("{home}/file")).unwrap();
    fs::write(format!("{home}/other"), "other").unwrap();
    machine.run(args).expect(3);

    for (path, content) in [(format!("{disk}/file"), "photo"), (format!("{home}/file"), "letter")] {
        let told = machine.ok(["dump", "-r", repo, &format!("latest:{path}")]);
        assert_eq!(told.stdout, content);
        assert!(told.stderr.contains("is not in the newest snapshot"), "{}", told.stderr);
    }
    let target = machine.path("target");
    let latest = format!("latest:{disk}");
    machine.ok(["restore", "-r", repo, &latest, "--path", disk, "--target", text(&target)]);
    assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "photo");
    let newest = machine.ok(["ls", "-r", repo, "latest", home]);
    assert_eq!((newest.stdout.trim(), &*newest.stderr), (&*format!("{home}/other"), ""));
    machine.run(["dump", "-r", repo, &format!("latest:{home}/never")]).expect(1);
}

#[test]
fn latest_of_a_folder_whose_parts_were_backed_up_apart_says_which_part_it_has() {
    let machine = Machine::new();
    let [repo, above] = ["repo", "above"].map(|name| machine.path(name));
    let [repo, above] = [&repo, &above].map(|path| text(path));
    machine.init(&["-r", repo]);
    for part in ["x", "y"] {
        fs::create_dir_all(format!("{above}/{part}")).unwrap();
        fs::write(format!("{above}/{part}/file"), part).unwrap();
        machine.ok(["backup", "-r", repo, &format!("{above}/{part}")]);
    }
    let target = machine.path("target");
    let latest = format!("latest:{above}");
    let told = machine.ok(["restore", "-r", repo, &latest, "--target", text(&target)]).stderr;
    assert!(!told.contains("is not in the newest snapshot"), "{told}");
    assert!(told.contains(&format!("only part of {above}")), "{told}");
    assert!(told.contains(&format!("{above}/x")), "{told}");
    let of_one = format!("latest:{above}/y");
    let told = machine.ok(["ls", "-r", repo, "latest", &format!("{above}/y")]).stderr;
    assert_eq!(told, "");
    machine.ok(["dump", "-r", repo, &format!("{of_one}/file")]);
}
