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
