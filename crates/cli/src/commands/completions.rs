//! `holdall completions`.

use std::io::Write;

use anyhow::Result;
use clap_complete::Shell;

use crate::exit::Exit;

/// Prints what makes a shell complete holdall's commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall completions bash > ~/.local/share/bash-completion/completions/holdall

For zsh, write it to a file `_holdall` in a folder of $fpath; for fish, to \
~/.config/fish/completions/holdall.fish.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command_line(), "holdall", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Done)
}
