//! `restore --delete` removes just what was listed: what comes or changes between its listing and its end stays.

use std::fs;
use std::process::Command;

use holdall_testkit::{Process, has_strace};

use crate::deleting::{BEFORE, Home};
use crate::house::{Outcome, run_by, text};

#[test]
fn what_comes_after_it_was_listed_stays_and_what_was_listed_goes() {
    let home = Home::with_large();
    fs::create_dir(home.home.join("new")).unwrap();
    fs::write(home.home.join("new/extra"), "extra").unwrap();
    let mine = home.home.join("new/mine");
    let outcome = home.restore_and_meanwhile(|| fs::write(&mine, "mine").unwrap());
    assert!(mine.exists(), "{}", outcome.stdout);
    let outcome = outcome.expect(3);
    assert!(outcome.stdout.contains("changed since it was listed"), "{}", outcome.stdout);
    assert!(!home.home.join("new/extra").exists());
}

#[test]
fn a_time_in_the_future_hides_no_change_of_another_file() {
    let home = Home::with_large();
    let report = home.home.join("new/sub/report.txt");
    fs::create_dir_all(report.parent().unwrap()).unwrap();
    fs::write(&report, "draft").unwrap();
    let camera = home.home.join("new/cam.jpg");
    fs::write(&camera, "picture").unwrap();
    let set = Command::new("touch").args(["-d", "2039-01-01"]).arg(&camera).status().unwrap();
    assert!(set.success());
    let outcome = home.restore_and_meanwhile(|| fs::write(&report, "work").unwrap());
    assert_eq!(fs::read(&report).unwrap(), b"work", "{}", outcome.stdout);
    let outcome = outcome.expect(3);
    assert_eq!(outcome.stdout.matches("since it was listed").count(), 1, "{}", outcome.stdout);
}

#[test]
fn what_is_gone_by_itself_is_no_problem() {
    let home = Home::with_large();
    let gone = home.home.join("new");
    fs::create_dir(&gone).unwrap();
    fs::write(gone.join("a"), "a").unwrap();
    fs::write(home.home.join("other"), "a").unwrap();
    home.restore_and_meanwhile(|| fs::remove_dir_all(&gone).unwrap()).expect(0);
    assert!(!home.home.join("other").exists());
}

#[test]
fn what_is_put_into_a_folder_while_it_is_removed_stays() {
    if !has_strace() {
        return;
    }
    let home = Home::new();
    let new = home.home.join("new");
    for name in ["aa", "bb", "cc"] {
        fs::create_dir_all(new.join(name)).unwrap();
        fs::write(new.join(name).join("extra"), "extra").unwrap();
    }
    let trace = home.machine.path("trace");
    // Between two of them there is time for what a person does.
    let slowed = ["-f", "-o", text(&trace), "-e", "trace=unlinkat", "-e"];
    let slowed = [&["strace"], &slowed[..], &["inject=unlinkat:delay_enter=300000"]].concat();
    let mut command = run_by(&slowed, &home.command(&["--json", "--exclude", "*.keep"]));
    let process = Process::spawn(&mut command).unwrap();
    let begun = std::time::Instant::now();
    while new.join("aa/extra").exists() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    fs::write(new.join("bb/precious"), "precious").unwrap();
    fs::write(new.join("bb/my.keep"), "mine").unwrap();
    fs::write(new.join("cc/extra"), "work").unwrap();
    let outcome = Outcome::of_process(process).expect(3);
    let mut kept = BEFORE.to_vec();
    kept.extend(["new/bb/my.keep", "new/bb/precious", "new/cc/extra"]);
    assert_eq!(home.files(), kept, "{}", outcome.stdout);
    assert_eq!(outcome.stdout.matches("since it was listed").count(), 1, "{}", outcome.stdout);
}
