//! What is in the help of a command.
//!
//! Options about a repository are not, where none is opened. They are taken all the same, so that a script may give them
//! everywhere. `-h` shows what a command takes and an example; `--help` says more.

use clap::{Arg, Command};

use crate::app::EVERY_COMMAND;
use crate::arguments::parts::REPOSITORY;

/// What names or opens a repository.
const OF_REPOSITORY: [&str; 4] = [REPOSITORY, "password_file", "identity", "fingerprint"];
/// Commands that open none, with all below them.
const WITHOUT_REPOSITORY: [&[&str]; 18] = [
    &["try"],
    &["serve"],
    &["invite"],
    &["discover"],
    &["admin"],
    &["disk"],
    &["config", "generate"],
    &["config", "validate"],
    &["completions"],
    &["man"],
    &["version"],
    &["lab", "disk"],
    &["lab", "files"],
    &["lab", "cpu"],
    &["lab", "quick"],
    &["lab", "listen"],
    &["lab", "compare"],
    &["lab", "history"],
];

/// What stands at the end of a short help.
const MORE: &str = "`--help` says more, such as the exit codes and the options of every command.";

/// The same for `-h`: without what all commands take, and with nothing but the example behind the options.
pub(crate) fn shortened(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_help_heading() == Some(EVERY_COMMAND) {
        true => arg.hide(true),
        false => arg,
    });
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let example = after.split("\n\n").next().filter(|first| first.starts_with("Example"));
    let after = example.map_or_else(|| MORE.to_owned(), |example| format!("{example}\n\n{MORE}"));
    command.after_help(after).mut_subcommands(shortened)
}

/// Hides in each command what means nothing there.
pub(crate) fn with_what_matters(line: Command) -> Command {
    let is_of_repository = |arg: &&Arg| OF_REPOSITORY.contains(&arg.get_id().as_str());
    let hidden = line.get_arguments().filter(is_of_repository).map(|arg| arg.clone().hide(true));
    let hidden: Vec<_> = hidden.collect();
    WITHOUT_REPOSITORY.iter().fold(line, |line, path| hide_at(line, path, &hidden))
}

fn hide_at(command: Command, path: &[&str], hidden: &[Arg]) -> Command {
    match path {
        [] => command.args(hidden.iter().cloned()),
        // The order of commands stays.
        [name, path @ ..] => command.mut_subcommands(|below| match below.get_name() == *name {
            true => hide_at(below, path, hidden),
            false => below,
        }),
    }
}
