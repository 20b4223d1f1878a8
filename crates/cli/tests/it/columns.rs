//! What is printed fits the terminal, and is broken between words.

use std::fs;
use std::process::Command;

use crate::house::{HOLDALL, Machine, Outcome, text};

#[test]
fn a_long_listing_fits_80_columns() {
    let machine = Machine::new();
    let (home, repo) = (machine.path("home"), machine.path("repo"));
    fs::create_dir_all(home.join("letters/old")).unwrap();
    fs::write(home.join("letters/will.odt"), vec![1; 1_234_567]).unwrap();
    fs::write(home.join("letters/old/note"), "note").unwrap();
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&home)]);
    for how in ["-l", "-lR"] {
        let mut command = machine.command(["ls", how, "latest", "letters", "-r", text(&repo)]);
        let said = Outcome::of(command.current_dir(&home)).expect(0).stdout;
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
        let will = said.lines().find(|line| line.ends_with(" will.odt")).expect("the file");
        assert!(will.contains(" 1.2 MB "), "{will}");
        assert_eq!(said.contains(" old/note\n"), how == "-lR", "{said}");
    }
}

/// Seen: a sentence was broken within its words wherever the terminal ended.
#[test]
fn sentences_on_a_terminal_are_broken_between_words() {
    let machine = Machine::new();
    let mut terminal = Command::new("script");
    let command = "stty cols 50; \"$HOLDALL\" restore latest; true";
    terminal.args(["-qec", command, "/dev/null"]).env("HOLDALL", HOLDALL);
    terminal.env("HOLDALL_CONFIG_DIR", machine.path("config"));
    let said = Outcome::of(&mut terminal).expect(0).stdout.replace('\r', "");
    let lines: Vec<_> = said.lines().collect();
    assert!(lines.len() > 3 && lines.iter().all(|line| line.chars().count() <= 50), "{said}");
    let whole = lines.join(" ");
    assert!(whole.contains("A whole snapshot is restored into a folder that is named"), "{whole}");
}

/// What a command says on a terminal of 80 columns.
fn on_a_terminal(machine: &Machine, args: &str) -> String {
    let mut terminal = Command::new("script");
    let command = format!("stty cols 80; \"$HOLDALL\" {args}");
    terminal.args(["-qec", &command, "/dev/null"]).env("HOLDALL", HOLDALL);
    terminal.env("HOLDALL_CONFIG_DIR", machine.path("config"));
    Outcome::of(&mut terminal).expect(0).stdout.replace('\r', "")
}

/// Seen: lines were broken by the terminal, within words and below what they are about.
#[test]
fn what_status_and_the_history_say_stays_in_its_column() {
    let machine = Machine::new();
    let repo = machine.path("repo");
    let gone = machine.path("a-rather-long-name-of-a-folder").join("that-is-not-there-any-more");
    fs::write(machine.path("file"), "file").unwrap();
    machine.init(&["-r", text(&repo)]);
    machine.ok(["backup", "-r", text(&repo), text(&machine.path("file"))]);
    machine.run(["backup", "-r", text(&repo), text(&gone)]).expect(1);
    let told = on_a_terminal(&machine, &format!("status -r {}", text(&repo)));
    let failed = told.split_once("last attempt").expect("it failed").1;
    let below = failed.lines().nth(1).expect("it is long");
    assert!(below.starts_with(&" ".repeat(17)), "{told}");

    let dir = machine.path("dir");
    fs::create_dir(&dir).unwrap();
    let row =
        "--op randwrite --block 4K --queue-depth 32 --jobs 4 --size 128K --end-fsync --buffered";
    let measure = [&["lab", "disk", text(&dir)][..], &row.split(' ').collect::<Vec<_>>()].concat();
    machine.ok(&measure);
    machine.ok(&measure);
    let told = on_a_terminal(&machine, "lab history");
    let below = told.lines().nth(1).expect("it is long");
    assert!(below.starts_with(&" ".repeat(39)), "{told}");
    let told = on_a_terminal(&machine, "lab compare last");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let figures = told.lines().filter(|line| line.ends_with(" %"));
    let ends: Vec<_> = figures.map(|line| line.chars().count()).collect();
    assert!(ends.len() > 1 && ends.windows(2).all(|pair| pair[0] == pair[1]), "{told}");
}
