//! Files that have content although their size is said to be 0, and file systems that only show the kernel's state.

use std::fs;

use crate::house::{Machine, Outcome, is_root, text};
use crate::mounts::namespace;

#[test]
fn a_file_that_is_said_to_be_empty_is_read_to_its_end_or_told() {
    let machine = Machine::new();
    let repo = machine.path("repo");
    machine.init(&["-r", text(&repo)]);
    let short = "/proc/version";
    // Longer than what lies in an entry, and read anew each time.
    let long = "/proc/crypto";
    machine.ok(["backup", "-r", text(&repo), short, long]);
    for file in [short, long] {
        let stored = machine.ok(["dump", "-r", text(&repo), &format!("latest:{file}")]).stdout;
        assert_eq!(stored, fs::read_to_string(file).unwrap(), "{file}");
    }
    // It has no end.
    let endless = "/proc/self/pagemap";
    let told = machine.run(["backup", "-r", text(&repo), short, endless, "--json"]).expect(3);
    let errors = told.of_type("error");
    assert_eq!(errors[0]["path"], endless);
    assert!(errors[0]["message"].as_str().unwrap().contains("more than 64 MiB"), "{}", errors[0]);
}

#[test]
fn what_only_shows_the_kernels_state_is_left_out_below_a_source_and_backed_up_where_it_is_named() {
    if !is_root("mounts") {
        return;
    }
    let machine = Machine::new();
    let (repo, source) = (machine.path("repo"), machine.path("source"));
    let [repo, source] = [&repo, &source].map(|path| text(path));
    machine.init(&["-r", repo]);
    for dir in ["proc", "sys", "disk"] {
        fs::create_dir_all(format!("{source}/{dir}")).unwrap();
    }
    let script = format!(
        "cd {source}; mount -t proc none proc; mount -t sysfs none sys; mount -t tmpfs none disk; touch disk/file"
    );
    let args = ["backup", "-r", repo, source];
    let told = Outcome::of(&mut namespace(&machine, &script, &args)).expect(0);
    for dir in ["proc", "sys"] {
        assert!(
            told.stderr.contains(&format!("note: {source}/{dir} has no files")),
            "{}",
            told.stderr
        );
    }
    let listed = machine.ok(["ls", "-r", repo, "latest", source, "--recursive"]).stdout;
    let below: Vec<_> = listed.lines().map(|path| &path[source.len()..]).collect();
    assert_eq!(below, ["/disk", "/disk/file", "/proc", "/sys"]);

    let named = format!("{source}/proc/sys/kernel");
    let args =
        ["backup", "-r", repo, &named, "--exclude", "/**/kernel/*", "--exclude", "!hostname"];
    Outcome::of(&mut namespace(&machine, &script, &args)).expect(0);
    let stored = machine.ok(["dump", "-r", repo, &format!("latest:{named}/hostname")]).stdout;
    assert_eq!(stored, fs::read_to_string("/proc/sys/kernel/hostname").unwrap());
}
