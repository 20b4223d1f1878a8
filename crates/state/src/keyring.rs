//! The system's keyring, as `secret-tool` of libsecret reaches it: GNOME's, KWallet, KeePassXC.
//!
//! A program in the place of a library: those for Rust would link D-Bus a second time, and this one is kept by those who
//! keep the keyring. Keys cross its standard input and output, and are never arguments.

use std::io::{self, Write};
use std::process::{Command, ExitStatus, Output, Stdio};

use holdall_crypto::KeyRing;
use holdall_format::RepositoryId;
use zeroize::Zeroizing;

use crate::error::StateError;
use crate::hex;

/// Debian has it in `libsecret-tools`.
const TOOL: &str = "secret-tool";

/// Puts a repository's key ring there, in place of the one that may be there, and reads it back.
pub(crate) fn put(repository: RepositoryId, ring: &KeyRing) -> Result<(), StateError> {
    let label = format!("--label=holdall: the key of the repository {repository}");
    let digits = hex::encode(&ring.encode());
    let answer = ask(&["store", &label], repository, Some(digits.as_bytes()))?;
    if !answer.status.success() {
        return Err(refused("does not take", repository, &answer));
    }
    let is_kept = get(repository)?.encode() == ring.encode();
    is_kept.then_some(()).ok_or_else(|| damaged(repository))
}

/// The key ring that was put there.
pub(crate) fn get(repository: RepositoryId) -> Result<KeyRing, StateError> {
    let answer = ask(&["lookup"], repository, None)?;
    let digits = std::str::from_utf8(&answer.stdout).unwrap_or_default().trim_end();
    if digits.is_empty() || !answer.status.success() {
        return Err(refused("does not give", repository, &answer));
    }
    let bytes = hex::decode_bytes(digits).ok_or_else(|| damaged(repository))?;
    KeyRing::decode(&bytes).map_err(|_| damaged(repository))
}

/// Takes it away; without an error if there is none.
pub(crate) fn remove(repository: RepositoryId) -> Result<(), StateError> {
    ask(&["clear"], repository, None).map(drop)
}

/// What the tool answers; its output is wiped once it was used.
struct Answer {
    status: ExitStatus,
    stdout: Zeroizing<Vec<u8>>,
    stderr: Vec<u8>,
}

fn ask(
    action: &[&str],
    repository: RepositoryId,
    input: Option<&[u8]>,
) -> Result<Answer, StateError> {
    let run = || -> io::Result<Output> {
        let mut child = Command::new(TOOL)
            .args(action)
            .args(["application", "holdall", "repository", &repository.to_string()])
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some((mut pipe, input)) = child.stdin.take().zip(input) {
            pipe.write_all(input)?;
        }
        child.wait_with_output()
    };
    let Output { status, stdout, stderr } = run().map_err(|error| not_run(repository, &error))?;
    Ok(Answer { status, stdout: Zeroizing::new(stdout), stderr })
}

fn not_run(repository: RepositoryId, error: &io::Error) -> StateError {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{TOOL} is not installed (Debian has it in libsecret-tools)")
        }
        _ => format!("{TOOL} does not run: {error}"),
    };
    StateError::Keyring { repository, reason }
}

fn refused(verb: &str, repository: RepositoryId, answer: &Answer) -> StateError {
    let said = String::from_utf8_lossy(&answer.stderr);
    let said = said.trim();
    let reason = match said.is_empty() {
        true => format!("the keyring {verb} it: it may be locked, or another user's"),
        false => format!("the keyring {verb} it: {said}"),
    };
    StateError::Keyring { repository, reason }
}

fn damaged(repository: RepositoryId) -> StateError {
    StateError::Keyring { repository, reason: "what the keyring has is no key of holdall".into() }
}
