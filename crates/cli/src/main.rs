//! The `holdall` command.
//!
//! It reads arguments, environment and `config.toml`, asks for passwords, shows progress, and turns
//! results and errors into words, JSON Lines and exit codes. What a backup is, it leaves to the
//! engine.

#![allow(clippy::disallowed_methods, reason = "the environment is read here and nowhere else")]

mod app;
mod arguments;
mod commands;
mod config;
mod deletions;
mod exit;
mod help;
mod lab;
mod opening;
#[cfg(test)]
mod reference;
mod report;
mod secrets;
mod terminal;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use holdall_format::OneLine;
use holdall_sys::supervisor;

use crate::app::{App, GlobalArgs};
use crate::arguments::parts;
use crate::commands::Command;
use crate::exit::{Exit, KnownNames, Refusal};
use crate::lab::remembered;
use crate::terminal::interrupt;
use crate::terminal::output::{self, Output};

/// Network backup at the speed of your wire.
#[derive(Parser)]
#[command(
    name = "holdall",
    version,
    max_term_width = 100,
    after_help = "`holdall try DIR` shows everything once, for real, and leaves nothing behind."
)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// The command line as a whole, for what is made of it.
pub(crate) fn command_line() -> clap::Command {
    help::with_what_matters(Cli::command())
}

/// Reads the arguments.
fn read_arguments() -> Result<(Cli, ArgMatches), clap::Error> {
    // Of anything but the help, it changes nothing.
    let is_short = std::env::args_os().any(|argument| argument == "-h");
    let line = if is_short { help::shortened(command_line()) } else { command_line() };
    let matches = line.try_get_matches()?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.global.is_repository_typed =
        matches.value_source(parts::REPOSITORY) == Some(ValueSource::CommandLine);
    cli.command.take_own(&mut cli.global);
    Ok((cli, matches))
}

fn main() -> ExitCode {
    if let Some(words) = supervisor::command_to_supervise(std::env::args_os()) {
        return ExitCode::from(supervisor::supervise(&words));
    }
    // Keys are in memory. Where it cannot be said, everything else works.
    let _ = holdall_sys::limits::refuse_core_files();
    // What it makes for itself it can use, whatever its umask says of others.
    holdall_sys::process::keep_own_rights();
    // Where it cannot be had, a file that becomes too long ends the process without a word.
    let _ = interrupt::survive_long_files();
    // Each heap takes 64 MiB of addresses, whatever it uses of them.
    if holdall_sys::memory::limit_bytes().is_some() {
        holdall_sys::heap::share(1);
    }
    let (cli, matches) = match read_arguments() {
        Ok(read) => read,
        Err(error) => {
            return ExitCode::from(tell_usage(&error).code());
        }
    };
    let mut exit = Exit::Failed;
    holdall_sys::thread::beside_signals(|| exit = run(cli, &matches));
    ExitCode::from(exit.code())
}

fn run(cli: Cli, matches: &ArgMatches) -> Exit {
    let output = cli.global.output();
    let app = |()| match cli.command.needs_profile() {
        true if cli.command.goes_on_without_settings() => {
            App::in_any_case(cli.global, output.clone())
        }
        true => App::new(cli.global, output.clone()),
        false => App::without_profile(output.clone()),
    };
    let checked = has_random_numbers().and_then(|()| parts::check(&command_line(), matches));
    let mut known = KnownNames::default();
    let ended = checked.and_then(app).and_then(|app| {
        let ended = cli.command.run(&app).map(|exit| app.ended(exit));
        ended.inspect_err(|_| known = remembered::known_names(&app))
    });
    ended.unwrap_or_else(|error| tell(&output, &error, &known))
}

/// Ends a command with a sentence that a library would end without one.
fn has_random_numbers() -> anyhow::Result<()> {
    holdall_sys::process::test_random_numbers().map_err(|error| {
        let message = format!("the system refuses random numbers, which keys need: {error}");
        Refusal::new(Exit::Failed, message)
            .hint("let the sandbox around holdall allow the call `getrandom`")
            .into()
    })
}

/// Tells what is wrong with the command line, or the help that it asked for.
fn tell_usage(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        // It repeats what was typed.
        error.render().to_string().lines().for_each(|line| output::to_stderr(OneLine(line)));
        return Exit::Usage;
    }
    // Help and version are no failures. If they cannot be written, there is no place left to report it.
    let _ = error.print();
    Exit::Done
}

/// Tells why the command failed, and returns how the process ends.
fn tell(output: &Output, error: &anyhow::Error, known: &KnownNames) -> Exit {
    let exit = exit::exit_of(error);
    if !exit::is_closed_pipe(error) {
        output.failure(error, exit.code(), exit::hint_of(error, known).as_deref());
    }
    exit
}
