//! `holdall init`.

use std::path::PathBuf;

use anyhow::Result;
use holdall_protocol::RepositoryError;
use holdall_state::Known;
use serde::Serialize;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::create::{Cipher, NewKeys, check_kit_file};
use crate::opening::open;
use crate::secrets::password::take_new;

/// Makes a repository
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall init -r /mnt/backup --recovery-kit kit.txt

Whoever loses both the password and the recovery kit loses the backups.

Exit codes: 0 done, 1 failed, or there is a repository already, 2 wrong usage, 13 not allowed, 14 \
server unreachable, 130 interrupted")]
pub(crate) struct Args {
    /// Writes the recovery kit to this new file; if its name ends in .html, as a page to print with a QR code
    /// [default: it is printed]
    #[arg(long, value_name = "FILE")]
    recovery_kit: Option<PathBuf>,
    /// The cipher of its blocks: ChaCha20 if a computer without instructions for AES will use it, such as a
    /// Raspberry Pi 4 [default: the one that is fastest on this computer]
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<Cipher>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    #[derive(Serialize)]
    struct Summary<'a> {
        repository: String,
        fingerprint: String,
        place: &'a str,
        lacking: &'a [String],
    }
    if app.named_repository().is_none() {
        return Err(Refusal::new(Exit::Usage, "no repository was named to be made")
            .hint("name it with -r, such as `holdall init -r /mnt/backup`")
            .into());
    }
    let kit_file = args.recovery_kit.as_deref();
    check_kit_file(kit_file)?;
    let opened = open::place(app, open::Patience::default())?;
    match opened.place.repository.describe() {
        Err(RepositoryError::NoRepository { .. }) => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(RepositoryError::AlreadyExists { place: opened.name }.into()),
    }
    let password = app.passwords.chosen(&opened.name)?;
    take_new(&app.output, &password)?;
    let new = NewKeys::draw(args.cipher);
    let server = opened.server.as_ref().map(|(hosts, identity)| (&hosts[..], *identity));
    let name = &opened.repository_name;
    new.create(app, &opened.place, Some(&password), server, name, kit_file)?;
    opened.remember(app, Known { repository: new.ring.repository(), epoch: None });
    let lacking = open::lacking(app)?;
    let summary = Summary {
        repository: new.ring.repository().to_string(),
        fingerprint: new.ring.fingerprint(),
        place: &opened.name,
        lacking: &lacking,
    };
    let made = format!("repository {} made at {}", summary.fingerprint, summary.place);
    let told = app.output.object("summary", &summary).and_then(|()| app.output.say(&made));
    told.unwrap_or_else(|error| app.output.warn_unreported(made, &error.into()));
    lacking.iter().for_each(|sentence| app.output.note(format_args!("of this place: {sentence}")));
    Ok(Exit::Done)
}
