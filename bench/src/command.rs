//! Commands: run through a prefix, and with errors that quote what they said.

use std::ffi::OsString;
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// As much of what a failed command said as an error quotes.
const QUOTED_BYTES: usize = 2000;

/// `command` with `prefix` before it, such as `ip netns exec NAME`; folder and environment stay.
pub(crate) fn prefixed(prefix: &[OsString], command: &Command) -> Command {
    let words: Vec<OsString> = prefix
        .iter()
        .cloned()
        .chain([command.get_program().to_owned()])
        .chain(command.get_args().map(ToOwned::to_owned))
        .collect();
    let mut wrapped = Command::new(&words[0]);
    wrapped.args(&words[1..]);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}

/// Runs `command` and returns its standard output.
///
/// # Errors
///
/// If it cannot be run or fails, with what it said.
pub(crate) fn text(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", said(&output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What a command that failed said, its end if it said a lot.
fn said(output: &Output) -> String {
    let all = [output.stdout.as_slice(), b"\n", output.stderr.as_slice()].concat();
    format!("{}: {}", output.status, end_of(&all))
}

/// The end of what was said.
pub(crate) fn end_of(said: &[u8]) -> String {
    let from = said.len().saturating_sub(QUOTED_BYTES);
    String::from_utf8_lossy(&said[from..]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_keeps_arguments_folder_and_environment() {
        let mut command = Command::new("tool");
        command.args(["a", "b c"]).env("NAME", "value").current_dir("/");
        let wrapped = prefixed(&["env".into(), "--".into()], &command);
        assert_eq!(wrapped.get_program(), "env");
        assert_eq!(wrapped.get_args().collect::<Vec<_>>(), ["--", "tool", "a", "b c"]);
        assert_eq!(wrapped.get_envs().count(), 1);
        assert_eq!(wrapped.get_current_dir(), command.get_current_dir());
        assert_eq!(prefixed(&[], &command).get_program(), "tool");
    }

    #[test]
    fn a_command_that_fails_is_quoted() {
        let error = text(Command::new("sh").args(["-c", "echo no >&2; false"])).unwrap_err();
        assert!(error.to_string().ends_with("no"), "{error}");
        assert_eq!(text(Command::new("echo").args(["one", "two"])).unwrap(), "one two\n");
    }
}
