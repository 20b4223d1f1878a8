//! Which options of every command are in the help of one: those about a repository are not, where none is opened. They
//! are taken all the same, so that a script may give them everywhere.

use clap::{Arg, Command};

use crate::arguments::parts::REPOSITORY;

/// What names or opens a repository.
const OF_REPOSITORY: [&str; 4] = [REPOSITORY, "password_file", "identity", "fingerprint"];
/// Commands that open none, with all below them.
const WITHOUT_REPOSITORY: [&[&str]; 14] = [
    &["try"],
    &["serve"],
    &["invite"],
    &["admin"],
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
