//! The journeys of `docs/journeys.md`, each run as it is written, as somebody who begins with an empty home.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::house::{HOLDALL, folder, run_by, text};

const PAGE: &str = include_str!("../../../../docs/journeys.md");

/// A journey in a network of its own, where a server can have its own port, and processes end with the script.
const APART: [&str; 6] = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// A name for the computer, since a server tells it to who is invited.
const BEGIN: &str = r#"set -euo pipefail
ip link set lo up
ip link add home0 type veth peer name home1
ip addr add 192.168.77.2/24 dev home0
ip link set home0 up; ip link set home1 up
cd; exec 3>&1; LINE=0
trap 'code=$?; [ $code = 0 ] || { echo "line $LINE ended with $code:"; cat said; } >&3' EXIT
: >said; exec >>said 2>&1
"#;

/// The lines of a journey in code blocks, and those in comments that prepare it, each with its number; `None` for
/// the end of a block.
fn lines_of(title: &str) -> Vec<(usize, &'static str)> {
    let mut all = PAGE.lines().enumerate().skip_while(|(_, line)| *line != format!("## {title}"));
    all.next().expect("a journey");
    let (mut lines, mut is_inside) = (Vec::new(), false);
    for (number, line) in all.take_while(|(_, line)| !line.starts_with("## ")) {
        match line {
            "```sh" | "<!-- sh" => is_inside = true,
            "```" | "-->" => is_inside = false,
            line if is_inside => lines.push((number + 1, line)),
            _ => {}
        }
    }
    lines
}

/// A script that does what the lines say, and ends with 1 where something else is printed.
fn script_of(title: &str) -> String {
    let mut script = BEGIN.to_owned();
    let mut was_expected = false;
    for (number, line) in lines_of(title) {
        match line.strip_prefix("#> ") {
            Some(expected) => {
                let expected = expected.replace('\'', r"'\''");
                writeln!(script, "LINE={number}; grep -qF -- '{expected}' said").unwrap();
            }
            None if was_expected => writeln!(script, ": >said\n{line}").unwrap(),
            // Within a loop a number would be one more command.
            None => writeln!(script, "{line}").unwrap(),
        }
        was_expected = line.starts_with("#> ");
    }
    script
}

fn travel(title: &str) {
    let home = folder();
    let bin = Path::new(HOLDALL).parent().unwrap();
    let script = home.path().join("journey.sh");
    fs::write(&script, script_of(title)).unwrap();
    let mut command = Command::new("bash");
    command.arg(&script).env("HOME", home.path()).env("TERM", "dumb");
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", text(bin)));
    let done = run_by(&APART, &command).output().expect("unshare is there");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn at_home() {
    travel("At home");
}

#[test]
fn thirty_machines() {
    travel("Thirty machines");
}

#[test]
fn a_slow_nas() {
    travel("A slow NAS");
}
