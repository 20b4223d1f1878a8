//! What no argument may be, whatever the command: a `~` in whose place no shell put the home folder, or standard input
//! where another argument is read from it too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, ValueHint};

use crate::exit::{Exit, Refusal};
use crate::terminal::output::Shown;

/// The repository, which is an argument of every command.
pub(crate) const REPOSITORY: &str = "default-repository";
/// Arguments that may be folders and that are no paths in Rust, for they may be addresses too.
const PLACES: [&str; 2] = [REPOSITORY, "from"];
/// Patterns: one that begins with `~/` would match a folder with the name `~`, not the home folder.
const PATTERNS: [&str; 3] = ["exclude", "iexclude", "include"];
/// Arguments for which `-` is standard input.
const DASHES: [&str; 6] = [
    "files_from",
    "invite",
    "password_file",
    "from_password_file",
    "new_password_file",
    "admin_token_file",
];
/// The names that standard input has.
const INPUTS: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
const PASSWORD_VARIABLE: &str = "HOLDALL_PASSWORD_FILE";

/// Checks the arguments that were typed.
///
/// # Errors
/// [`Refusal`] names the argument.
pub(crate) fn check(line: &Command, matches: &ArgMatches) -> Result<()> {
    let (mut command, mut matches) = (line, matches);
    while let Some((name, below)) = matches.subcommand() {
        matches = below;
        command = command.find_subcommand(name).unwrap_or(command);
    }
    let mut readers = Vec::new();
    for id in matches.ids().map(clap::Id::as_str) {
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let find =
            |command: &Command| command.get_arguments().find(|arg| arg.get_id() == id).cloned();
        let Some(arg) = find(command).or_else(|| find(line)) else { continue };
        let is_path = arg.get_value_hint() == ValueHint::AnyPath
            || PLACES.contains(&id)
            || PATTERNS.contains(&id);
        for value in matches.get_raw(id).into_iter().flatten() {
            if is_path && is_below_a_home(value) {
                return Err(unexpanded(value).into());
            }
            if is_input(value) || (value == "-" && DASHES.contains(&id)) {
                readers.push(arg.get_long().map_or(id.to_owned(), |long| format!("--{long}")));
            }
        }
    }
    let is_input_named = std::env::var_os(PASSWORD_VARIABLE).is_some_and(|file| is_input(&file));
    if is_input_named && !matches.try_contains_id("password_file").unwrap_or(true) {
        readers.push(PASSWORD_VARIABLE.to_owned());
    }
    match &readers[..] {
        [first, second, ..] => Err(read_twice(first, second).into()),
        _ => Ok(()),
    }
}

fn is_below_a_home(value: &OsStr) -> bool {
    value == "~" || value.as_bytes().starts_with(b"~/")
}

fn is_input(value: &OsStr) -> bool {
    INPUTS.iter().any(|input| value == *input)
}

fn unexpanded(value: &OsStr) -> Refusal {
    let shown = Shown(value.as_bytes());
    Refusal::new(Exit::Usage, format!("{shown}: no shell put your home folder in the place of ~"))
        .hint(format!("write \"$HOME\" for it, or ./{shown} if a folder of that name is meant"))
}

fn read_twice(first: &str, second: &str) -> Refusal {
    let message = match first == second {
        true => format!("{first} is given standard input twice, which can be read once"),
        false => {
            format!("{first} and {second} are both given standard input, which can be read once")
        }
    };
    Refusal::new(Exit::Usage, message).hint("put one of the two into a file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(arguments: &[&str]) -> Result<()> {
        let line = crate::command_line();
        let typed = [&["holdall"], arguments].concat();
        check(&line, &line.clone().try_get_matches_from(typed).unwrap())
    }

    #[track_caller]
    fn refused(arguments: &[&str], part: &str) {
        let refusal = checked(arguments).unwrap_err();
        assert_eq!(crate::exit::exit_of(&refusal), Exit::Usage);
        assert!(refusal.to_string().contains(part), "{refusal}");
    }

    #[test]
    fn a_home_that_no_shell_put_there_is_refused_where_a_path_is_meant() {
        refused(&["backup", "~/docs"], "~/docs");
        refused(&["backup", "-r", "~", "docs"], "~");
        refused(&["--password-file=~/pw", "snapshots"], "~/pw");
        refused(&["restore", "latest", "--target=~/out"], "~/out");
        refused(&["copy", "--from=~/repo"], "~/repo");
        refused(&["backup", "docs", "--exclude=~/.cache"], "~/.cache");
        checked(&["backup", "./~", "~other", "docs/~", "--exclude", "*~"]).unwrap();
        checked(&["restore", "latest:~/docs", "--target", "out"]).unwrap();
    }

    #[test]
    fn standard_input_is_named_once() {
        refused(&["backup", "--files-from", "-", "--password-file", "/dev/stdin"], "both given");
        refused(&["backup", "--files-from", "-", "--files-from", "/dev/fd/0"], "twice");
        refused(&["pair", "-", "--password-file", "/proc/self/fd/0"], "invite and --password-file");
        checked(&["backup", "--files-from", "-", "--password-file", "pw"]).unwrap();
        refused(&["backup", "--files-from", "-", "--password-file", "-"], "both given");
        checked(&["backup", "-", "--password-file", "/dev/stdin"]).unwrap();
    }
}
