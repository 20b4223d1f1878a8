//! `holdall admin backup-identity` and `restore-identity`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_server::admin::{self, BackupIdentity};
use holdall_state::private_file;
use serde::Serialize;
use zeroize::Zeroizing;

use super::ask;
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::counted;

/// The longest copy that is read: some ten thousand machines.
const COPY_MAX_BYTES: u64 = 8 << 20;

/// Writes what nothing can make anew into a small file: the server's identity, and whom it knows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin backup-identity /mnt/stick/server-identity.json

Machines know the server by its identity, and go on without being paired again once `holdall admin restore-identity` put it \
back. Machines with their keys and rights, quotas, rules for keeping and the names of repositories are in it; \
deletions that wait, invites and tokens are not. Write it anew after each pairing, renaming or revocation, such as once a day. \
Whoever has the file can pretend to be the server, but can read no backup: only its owner can read it (mode 0600). \
The repositories are not in it.

Exit codes: 0 done, 1 failed, 2 wrong usage")]
pub(crate) struct BackupArgs {
    /// Where to write it; a file that is there is replaced
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Makes a new data folder the server that a file of `backup-identity` is of
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall admin restore-identity /mnt/stick/server-identity.json --data /srv/backups

The data folder may be empty, or have `repositories` alone. A server must not run on it, and no other server may have the \
same identity. Then put the repositories back, and start the server: `holdall serve --data DIR`.

Exit codes: 0 done, 1 failed, such as for a folder that has an identity, 2 wrong usage")]
pub(crate) struct RestoreArgs {
    /// The file that `holdall admin backup-identity` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What either did, as programs see it.
#[derive(Serialize)]
struct JsonIdentity<'a> {
    file: String,
    fingerprint: &'a str,
}

pub(crate) fn backup(args: &BackupArgs, data: &Path, app: &App) -> Result<Exit> {
    check_elsewhere(&args.file, data)?;
    let copy = ask(data, &BackupIdentity {})?;
    let mut text = Zeroizing::new(copy.text.as_bytes().to_vec());
    text.push(b'\n');
    private_file::replace(&std::path::absolute(&args.file)?, &text)?;
    tell(app, &args.file, &copy.fingerprint)?;
    app.output.say(format_args!(
        "{}: the identity {} and {}",
        args.file.display(),
        copy.fingerprint,
        counted(copy.machines as u64, "machine")
    ))?;
    Ok(Exit::Done)
}

/// A copy within the data folder would be lost with it, or take the place of one of its files.
fn check_elsewhere(file: &Path, data: &Path) -> Result<(), Refusal> {
    let folder = std::path::absolute(file).ok().and_then(|file| file.parent()?.canonicalize().ok());
    let is_within = folder.zip(data.canonicalize().ok());
    match is_within.is_some_and(|(folder, data)| folder.starts_with(data)) {
        true => Err(Refusal::new(
            Exit::Usage,
            format!("{} is in the server's data folder: keep the copy elsewhere", file.display()),
        )),
        false => Ok(()),
    }
}

pub(crate) fn restore(args: &RestoreArgs, data: &Path, app: &App) -> Result<Exit> {
    let name = || format!("{} is not there", args.file.display());
    let bytes = private_file::read_named(&args.file, COPY_MAX_BYTES)?.with_context(name)?;
    let bytes = Zeroizing::new(bytes);
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let identity = admin::restore_identity(data, text)
        .with_context(|| format!("putting {} back", args.file.display()))?;
    let fingerprint = holdall_protocol::fingerprint(&identity);
    tell(app, &args.file, &fingerprint)?;
    app.output.say(format_args!("{} is the server {fingerprint} from now on", data.display()))?;
    app.output.note(format_args!(
        "put its repositories back into {}, then start it: `holdall serve --data {}`",
        data.join("repositories").display(),
        data.display()
    ));
    Ok(Exit::Done)
}

fn tell(app: &App, file: &Path, fingerprint: &str) -> Result<()> {
    let file = file.display().to_string();
    Ok(app.output.object("identity_copy", &JsonIdentity { file, fingerprint })?)
}
