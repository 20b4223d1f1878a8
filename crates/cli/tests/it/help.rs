//! The help is enough: every command says what it is for, by example, and how it can end; shells
//! complete it, and man pages say the same.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::house::{HOLDALL, Machine, Outcome};

/// The exit codes that a command may have.
const CODES: [u32; 12] = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 130];

fn help_of(machine: &Machine, command: &[String]) -> String {
    let help = "--help".to_owned();
    machine.ok(command.iter().chain([&help])).stdout
}

/// The names below `Commands:` in a help.
fn commands_in(help: &str) -> Vec<String> {
    let section = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let section = section.take_while(|line| !line.is_empty());
    let name = |line: &str| {
        let named = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
        named.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
    };
    section.filter_map(name).filter(|name| name != "help").collect()
}

/// Every command, and every command below one, with its help.
fn all_commands(machine: &Machine) -> Vec<(Vec<String>, String)> {
    let mut waiting = vec![Vec::new()];
    let mut found = Vec::new();
    while let Some(command) = waiting.pop() {
        let help = help_of(machine, &command);
        for name in commands_in(&help) {
            let mut below = command.clone();
            below.push(name);
            waiting.push(below);
        }
        found.push((command, help));
    }
    found
}

/// The codes that a help lists: each begins an item of the list.
fn exit_codes(help: &str) -> Vec<u32> {
    let Some((_, list)) = help.split_once("Exit codes:") else { return Vec::new() };
    let list = list.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    list.split(',').filter_map(|item| item.split_whitespace().next()?.parse().ok()).collect()
}

#[test]
fn every_command_has_an_example_and_says_how_it_can_end() {
    let machine = Machine::new();
    let all = all_commands(&machine);
    assert!(all.len() > 12, "{all:?}");
    for (command, help) in &all {
        let name = command.join(" ");
        if !commands_in(help).is_empty() {
            continue;
        }
        let example = format!("holdall {name}");
        let (_, after) = help.split_once("Example").unwrap_or_else(|| panic!("{name}: no example"));
        assert!(after.contains(&example), "{name}: the example is of another command\n{help}");
        let codes = exit_codes(help);
        for code in &codes {
            assert!(CODES.contains(code), "{name}: {code} is no exit code\n{help}");
        }
        assert!(codes.contains(&0) && codes.contains(&2), "{name}: {codes:?}\n{help}");
        assert!(codes.is_sorted(), "{name}: {codes:?}");
    }
}

/// Seen: helps without the code of a directory that is in use, or of an interrupt at the question for a password.
#[test]
fn what_any_command_on_a_repository_may_meet_is_in_its_list() {
    let machine = Machine::new();
    let lists = |command: &str, code| {
        let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
        let codes = exit_codes(&help_of(&machine, &words));
        assert!(codes.contains(&code), "{command}: {code} is not in {codes:?}");
    };
    let keys = ["key list", "key add", "key remove", "key change", "key rotate"];
    let reading = ["ls", "find", "restore", "dump", "check", "diff", "history", "stats"];
    let writing = ["backup", "copy", "tag", "forget", "compact", "pair"];
    for command in [&keys[..], &reading, &writing].concat() {
        lists(command, 11);
        lists(command, 130);
    }
    for command in ["snapshots", "init"] {
        lists(command, 130);
    }
}

#[test]
fn every_argument_is_described() {
    let machine = Machine::new();
    for (command, help) in all_commands(&machine) {
        let mut lines = help.lines().peekable();
        while let Some(line) = lines.next() {
            let argument = line.trim_start();
            // What is further in goes on with a description.
            let is_one = (2..10).contains(&(line.len() - argument.len()))
                && argument.starts_with(['-', '<', '[']);
            if !is_one {
                continue;
            }
            // On the same line after two spaces, or on the next one.
            let described = argument.contains("  ")
                || lines.peek().is_some_and(|next| next.starts_with("          "));
            assert!(described, "{}: {line}", command.join(" "));
        }
    }
}

/// Seen: `-h` of most commands was as long as `--help`.
#[test]
fn a_short_help_has_the_example_and_is_shorter() {
    let machine = Machine::new();
    for (command, long) in all_commands(&machine) {
        let short = machine.ok(command.iter().map(String::as_str).chain(["-h"])).stdout;
        let name = command.join(" ");
        assert!(short.lines().count() < long.lines().count(), "{name}: {short}");
        assert!(short.contains("--help"), "{name}: {short}");
        if commands_in(&long).is_empty() {
            assert!(short.contains("Example") && !short.contains("Exit codes"), "{name}: {short}");
        }
    }
}

/// Seen: each help ended with nine lines of options, also of commands in which most of them mean nothing.
#[test]
fn options_about_a_repository_are_in_the_help_of_commands_that_open_one() {
    let machine = Machine::new();
    let of_repository = ["--repo <", "--password-file", "--identity", "--fingerprint"];
    for command in ["admin revoke", "lab disk", "serve", "version", "try"] {
        let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
        let help = help_of(&machine, &words);
        for option in of_repository {
            assert!(!help.contains(option), "{command}: {option}\n{help}");
        }
        assert!(help.contains("--json") && help.contains("--quiet"), "{command}: {help}");
    }
    for command in ["snapshots", "backup", "check"] {
        let help = help_of(&machine, &[command.to_owned()]);
        assert!(of_repository.iter().all(|option| help.contains(option)), "{command}: {help}");
    }
    machine.ok(["version", "--fingerprint", "given all the same"]);
    machine.ok(["--fingerprint", "given before", "version"]);
}

#[test]
fn what_is_mistyped_is_told_with_what_may_be_meant() {
    let machine = Machine::new();
    let said = machine.run(["bakcup", "/home"]).expect(2);
    assert!(said.stderr.contains("'backup'"), "{}", said.stderr);
    let said = machine.run(["backup", "--exclud", "x", "/home"]).expect(2);
    assert!(said.stderr.contains("'--exclude'"), "{}", said.stderr);
    let said = machine.run(["restore"]).expect(2);
    assert!(said.stderr.contains("--help"), "{}", said.stderr);
}

/// Runs a bash that knows the completions, and completes a command line.
fn completed(script: &str, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let last = words.len() - 1;
    let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let ask = format!(
        "source /dev/stdin\nCOMP_WORDS=({list}); COMP_CWORD={last}; COMP_LINE='{line}'; \
         COMP_POINT=${{#COMP_LINE}}\n\
         _holdall holdall '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words[last],
        words[last - 1],
    );
    // The script is longer than an argument may be.
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &ask]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut bash = bash.stderr(Stdio::piped()).spawn().expect("there is bash");
    bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let machine = Machine::new();
    let script = machine.ok(["completions", "bash"]).stdout;
    assert_eq!(completed(&script, "holdall resto"), ["restore"]);
    let snap = completed(&script, "holdall sn");
    assert_eq!(snap, ["snapshots"]);
    assert_eq!(completed(&script, "holdall backup --exclude-c"), ["--exclude-caches"]);
    assert!(completed(&script, "holdall completions z").contains(&"zsh".to_owned()));
}

#[test]
fn every_shell_gets_completions_that_it_can_read() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = machine.ok(["completions", shell]).stdout;
        assert!(script.contains("snapshots"), "{shell}");
        let Some(mut check) = checker(shell) else { continue };
        let file = machine.path(shell);
        fs::write(&file, script).unwrap();
        let output = check.arg(&file).output().expect("it is there");
        assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    }
    machine.run(["completions", "tcsh"]).expect(2);
}

/// The shell itself, only reading, if it is installed.
fn checker(shell: &str) -> Option<Command> {
    let is_there = Command::new(shell).arg("--version").output().is_ok();
    let mut command = Command::new(shell);
    (is_there && matches!(shell, "bash" | "zsh" | "fish")).then(|| {
        command.arg("-n");
        command
    })
}

#[test]
fn every_command_has_a_man_page_that_groff_can_set() {
    let machine = Machine::new();
    let folder = machine.path("man");
    let Outcome { stdout, .. } = machine.ok(["man", folder.to_str().unwrap()]);
    assert!(stdout.contains("man pages"), "{stdout}");
    for (command, _) in all_commands(&machine) {
        let name = [vec!["holdall".to_owned()], command].concat().join("-");
        let page = folder.join(format!("{name}.1"));
        let text = fs::read_to_string(&page).unwrap_or_else(|_| panic!("{name} has no page"));
        assert!(text.contains(&name.replace('-', "\\-")), "{name} is not in its page");
        let groff = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(&page).output();
        let groff = groff.expect("groff is there");
        let said = String::from_utf8_lossy(&groff.stderr);
        assert!(groff.status.success() && said.is_empty(), "{name}: {said}");
    }
    let hidden = Command::new(HOLDALL).arg("--help").output().unwrap();
    assert!(!String::from_utf8_lossy(&hidden.stdout).contains("\n  man "));
}
