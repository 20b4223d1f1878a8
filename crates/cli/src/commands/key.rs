//! `holdall key`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_crypto::{
    OwnPublicKey, RecoverySecret, SystemEntropy, WORK_FACTOR_LOG_N, wrap_for_key, wrap_passphrase,
    wrap_recovery,
};
use holdall_format::{Wrapping, WrappingKind};
use holdall_state::{KeptKeys, KeyPlace, private_file};
use serde::Serialize;

use super::kit_trial;
use crate::app::App;
use crate::exit::{Exit, Refusal, is_certain};
use crate::opening::create::{check_kit_file, kit_text, tell_kit};
use crate::opening::key_set::KeySet;
use crate::secrets::password::{chosen_anew, take_new};
use crate::terminal::output::Shown;

/// More than any file with a public key has.
const PUBLIC_KEY_MAX_BYTES: u64 = 64 << 10;

/// The warning after a key was removed.
const OLDER_KEYS: &str = "an older copy of the repository's keys, such as in a server's data folder, still opens \
                          with what was removed; `holdall key rotate` protects what is backed up from now on";

/// Lists, adds, removes and changes what opens the repository
///
/// All keys open the same secrets. If you remove a key or change the password, an older copy of the keys still
/// opens with what was removed. A server keeps older copies, so that its administrator can undo what a stolen
/// machine did; a directory keeps none. After a theft, remove the computer's key or change the password, and
/// then rotate the keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall key list
          holdall key add --passphrase
          holdall key add --recovery-kit second-kit.html
          holdall key try-kit kit.txt
          holdall key add --recipient-file ~/.ssh/id_ed25519.pub --label laptop
          holdall snapshots --identity ~/.ssh/id_ed25519
          holdall key remove laptop
          holdall key keep keyring
          holdall key rotate

Exit codes: 0 done, 1 failed, or the keys were changed at the same time, 2 wrong usage, 10 no such \
repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Lists all keys
    #[command(after_help = "\
Example: holdall key list

Exit codes: 0 done, 1 failed, 2 wrong usage, 10 no such repository, 11 in use, 12 wrong password, 13 \
not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
    List,
    /// Adds a key
    Add(Add),
    /// Opens the repository with a recovery kit alone, as a new computer would, and keeps nothing
    ///
    /// Try your kit once a year, from its paper: type or scan it into a file. `holdall status` shows when it was tried.
    #[command(after_help = "\
Example: holdall key try-kit kit.txt

Exit codes: 0 done, 1 failed, 2 wrong usage, or no kit, 10 no such repository, 11 in use, 12 not the kit of this \
repository, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
    TryKit {
        /// The recovery kit
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Takes a key away; never the last one
    #[command(after_help = "\
Example: holdall key remove laptop

Exit codes: 0 done, 1 failed, or the keys were changed at the same time, 2 wrong usage, 10 no such \
repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
    Remove {
        /// Its label or its number, as `holdall key list` shows them
        #[arg(value_name = "KEY")]
        key: String,
    },
    /// Replaces a password
    #[command(after_help = "\
Example: holdall key change

Exit codes: 0 done, 1 failed, or the keys were changed at the same time, 2 wrong usage, 10 no such \
repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
    Change {
        /// Which, where there are several: its label or its number
        #[arg(value_name = "KEY")]
        key: Option<String>,
        #[command(flatten)]
        new_password: NewPassword,
    },
    /// Keeps this computer's key in the system's keyring, or in a file
    ///
    /// A paired computer keeps its key in a file that its owner alone can read, so that backups run when nobody is logged in. In the
    /// keyring (GNOME's, KWallet, KeePassXC) the key is sealed with your login's password until you log in: someone who carries off the
    /// disk cannot read the backups with it. Until then backups by the agent fail, and are tried again. Needs `secret-tool`; on Debian
    /// it is in libsecret-tools. For a repository that asks for a password, this computer keeps a key from now on. What a file had
    /// may stay on the disk until it is overwritten: to be sure, `holdall key rotate` afterwards.
    #[command(after_help = "\
Examples: holdall key keep keyring
          holdall key keep file

Exit codes: 0 done, 1 failed, or the keyring is locked, 2 wrong usage, 10 no such repository, 11 in use, 12 wrong password, \
13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
    Keep {
        /// Where
        #[arg(value_name = "PLACE")]
        place: Place,
    },
    /// Seals what is backed up from now on with a new secret
    ///
    /// The keys in `holdall key list` open the new secret, too. Keys that were removed do not, nor does a copy of
    /// the former secret, such as on a stolen computer. What is stored already stays as it is: a thief who has the
    /// former secret and the stored bytes can still read old snapshots. He can also find out whether new ones hold a
    /// content that he already has. `holdall copy` into a new repository prevents that, too. Another computer that
    /// keeps this repository's key needs the password once, or the recovery kit.
    #[command(after_help = "\
Example: holdall key remove laptop && holdall key rotate

Exit codes: 0 done, 1 failed, or the keys were changed at the same time, 2 wrong usage, 10 no such \
repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
    Rotate,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Place {
    /// The system's keyring
    Keyring,
    /// A file of mode 0600 in the state folder
    File,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall key add --passphrase
          holdall key add --recovery-kit second-kit.txt
          holdall key add --recipient-file ~/.ssh/id_ed25519.pub --label laptop

Exit codes: 0 done, 1 failed, or the keys were changed at the same time, 2 wrong usage, 10 no such \
repository, 11 in use, 12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
struct Add {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    new_password: NewPassword,
    /// What to call it
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// A password
    #[arg(long)]
    passphrase: bool,
    /// A recovery kit, written to this new file; if its name ends in .html, as a page to print with a QR code
    #[arg(long, value_name = "FILE")]
    recovery_kit: Option<PathBuf>,
    /// Somebody's public key: `age1...` or `ssh-ed25519 ...`
    #[arg(long, value_name = "KEY")]
    recipient: Option<String>,
    /// The same from a file, such as ~/.ssh/id_ed25519.pub
    #[arg(long, value_name = "FILE")]
    recipient_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct NewPassword {
    /// Reads the new password from this file [or HOLDALL_NEW_PASSWORD, or asked for twice]
    #[arg(long, value_name = "FILE")]
    new_password_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    match &args.action {
        Action::List => list(app, &KeySet::open(app)?)?,
        Action::Add(args) => add(app, args)?,
        Action::TryKit { file } => kit_trial::try_out(app, file)?,
        Action::Remove { key } => remove(app, key)?,
        Action::Keep { place } => keep(app, *place)?,
        Action::Rotate => rotate(app)?,
        Action::Change { key, new_password } => change(app, key.as_deref(), new_password)?,
    }
    Ok(Exit::Done)
}

fn list(app: &App, keys: &KeySet) -> Result<()> {
    #[derive(Serialize)]
    struct Key<'a> {
        number: usize,
        kind: &'static str,
        label: &'a str,
        generation: u64,
        epoch: usize,
    }
    let (generation, epoch) = (keys.set.generation, keys.epoch());
    for (number, Wrapping { kind, label, .. }) in (1..).zip(&keys.set.wrappings) {
        let kind = kind_name(*kind);
        app.output.object("key", &Key { number, kind, label, generation, epoch })?;
        app.output.result(format_args!("{number:>3}  {kind:<12}  {}", Shown(label.as_bytes())))?;
    }
    if KeptKeys::in_state(&app.folders.state).place(keys.ring.repository())?.is_some() {
        app.output.note(
            "this computer keeps a key beside these, so it needs none of them; so does each that was paired. If one is \
             stolen, `holdall admin revoke` on the server locks it out, and `holdall key rotate` protects what is \
             backed up from then on",
        );
    }
    Ok(())
}

fn kind_name(kind: WrappingKind) -> &'static str {
    match kind {
        WrappingKind::Passphrase => "passphrase",
        WrappingKind::Recovery => "recovery-kit",
        WrappingKind::Recipient => "recipient",
    }
}

fn add(app: &App, args: &Add) -> Result<()> {
    let what = &args.what;
    check_kit_file(what.recovery_kit.as_deref())?;
    let public = recipient(what)?;
    let mut keys = KeySet::open(app)?;
    keys.check_room()?;
    let label = args.label.as_deref();
    if let Some(file) = &what.recovery_kit {
        return add_kit(app, &mut keys, file, label);
    }
    let wrapping = match public {
        Some(public) => wrap_for_key(&keys.ring, &public),
        None => passphrase(app, &keys, &args.new_password)?,
    };
    let label = keys.free_label(label, &wrapping.label)?;
    append(app, &mut keys, Wrapping { label, ..wrapping })
}

/// The public key that was given, if one was.
fn recipient(what: &What) -> Result<Option<OwnPublicKey>> {
    let text = match (&what.recipient, &what.recipient_file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => {
            let bytes = private_file::read_named(file, PUBLIC_KEY_MAX_BYTES)?;
            let bytes = bytes.with_context(|| format!("{} is not there", file.display()))?;
            String::from_utf8(bytes)
                .with_context(|| format!("{} is no public key", file.display()))?
        }
        (None, None) => return Ok(None),
    };
    let refused = |reason| Refusal::new(Exit::Usage, format!("the recipient: {reason}"));
    Ok(Some(OwnPublicKey::from_text(&text).map_err(refused)?))
}

fn passphrase(app: &App, keys: &KeySet, new: &NewPassword) -> Result<Wrapping> {
    let file = new.new_password_file.as_deref();
    let password = chosen_anew(file, keys.name(), &app.interrupt)?;
    take_new(&app.output, &password)?;
    Ok(wrap_passphrase(&keys.ring, &password, WORK_FACTOR_LOG_N))
}

/// The kit is handed out first: a wrapping whose kit nobody has would be of no use.
fn add_kit(app: &App, keys: &mut KeySet, file: &Path, label: Option<&str>) -> Result<()> {
    let secret = RecoverySecret::generate(&mut SystemEntropy);
    let wrapping = wrap_recovery(&keys.ring, &secret);
    let label = keys.free_label(label, &wrapping.label)?;
    let kit = kit_text(&keys.kit(&secret), Some(file))?;
    private_file::hand_out(file, &kit)?;
    if let Err(error) = append(app, keys, Wrapping { label, ..wrapping }) {
        // It may open the repository if only the answer was lost; then it is better there than gone.
        if is_certain(&error) {
            let _ = std::fs::remove_file(file);
        } else {
            app.output.note(format_args!(
                "the key may have been added: {} stays, and opens {} if `holdall key list` shows it",
                file.display(),
                keys.name()
            ));
        }
        return Err(error);
    }
    tell_kit(app, &kit, Some(file))
}

fn append(app: &App, keys: &mut KeySet, wrapping: Wrapping) -> Result<()> {
    let label = wrapping.label.clone();
    keys.replace(app, [&keys.set.wrappings[..], &[wrapping]].concat())?;
    let done = format!("added the key {label:?} to {}", keys.name());
    tell(app, &done, summary(app, keys, &done));
    Ok(())
}

fn remove(app: &App, wanted: &str) -> Result<()> {
    let mut keys = KeySet::open(app)?;
    let at = keys.find(wanted)?;
    if keys.set.wrappings.len() == 1 {
        let message = "it is the last key: without it the repository could never be opened again";
        return Err(Refusal::new(Exit::Failed, message)
            .hint("add another first: `holdall key add`")
            .into());
    }
    let mut wrappings = keys.set.wrappings.clone();
    let gone = wrappings.remove(at);
    let is_kit = |one: &Wrapping| one.kind == WrappingKind::Recovery;
    let was_last_kit = is_kit(&gone) && !wrappings.iter().any(is_kit);
    keys.replace(app, wrappings)?;
    let done = format!("{:?} does not open {} any more", gone.label, keys.name());
    tell(app, &done, summary(app, &keys, &done));
    if was_last_kit {
        app.output.note(
            "that was the last recovery kit: make another with `holdall key add --recovery-kit FILE`",
        );
    }
    app.output.note(OLDER_KEYS);
    Ok(())
}

fn change(app: &App, wanted: Option<&str>, new: &NewPassword) -> Result<()> {
    let mut keys = KeySet::open(app)?;
    let at = password_to_change(&keys, wanted)?;
    let label = keys.set.wrappings[at].label.clone();
    let mut wrappings = keys.set.wrappings.clone();
    wrappings[at] = Wrapping { label, ..passphrase(app, &keys, new)? };
    keys.replace(app, wrappings)?;
    let done = format!("the password of {} was changed", keys.name());
    tell(app, &done, summary(app, &keys, &done));
    app.output.note(OLDER_KEYS);
    Ok(())
}

fn password_to_change(keys: &KeySet, wanted: Option<&str>) -> Result<usize, Refusal> {
    let is_password = |at: &usize| keys.set.wrappings[*at].kind == WrappingKind::Passphrase;
    if let Some(wanted) = wanted {
        let at = keys.find(wanted)?;
        let message = format!("{wanted:?} is no password");
        return is_password(&at).then_some(at).ok_or_else(|| Refusal::new(Exit::Usage, message));
    }
    let passwords: Vec<_> = (0..keys.set.wrappings.len()).filter(is_password).collect();
    match passwords[..] {
        [one] => Ok(one),
        [] => Err(Refusal::new(Exit::Failed, "the repository has no password")
            .hint("`holdall key add --passphrase` gives it one")),
        _ => Err(Refusal::new(Exit::Usage, "the repository has several passwords")
            .hint("say which: `holdall key change KEY`; `holdall key list` shows them")),
    }
}

fn keep(app: &App, place: Place) -> Result<()> {
    let keys = KeySet::open(app)?;
    let kept = KeptKeys::in_state(&app.folders.state);
    let (place, shown) = match place {
        Place::Keyring => (KeyPlace::Keyring, "the system's keyring"),
        Place::File => (KeyPlace::File, "a file that you alone can read"),
    };
    kept.keep_in(place, keys.ring.repository(), &keys.ring)?;
    let done = format!("this computer's key of {} is in {shown}", keys.name());
    tell(app, &done, summary(app, &keys, &done));
    Ok(())
}

fn rotate(app: &App) -> Result<()> {
    let mut keys = KeySet::open(app)?;
    keys.rotate(app)?;
    let done = format!("only these keys open new backups to {}", keys.name());
    let told = list(app, &keys).and_then(|()| summary(app, &keys, &done));
    tell(app, &format!("the keys of {} were rotated", keys.name()), told);
    Ok(())
}

/// A change that was made succeeds, even if its report cannot be written.
fn tell(app: &App, done: &str, told: Result<()>) {
    told.unwrap_or_else(|error| app.output.warn_unreported(done, &error));
}

fn summary(app: &App, keys: &KeySet, done: &str) -> Result<()> {
    #[derive(Serialize)]
    struct Summary {
        generation: u64,
        epoch: usize,
        keys: usize,
    }
    let (generation, count) = (keys.set.generation, keys.set.wrappings.len());
    app.output.object("summary", &Summary { generation, epoch: keys.epoch(), keys: count })?;
    app.output.say(done)?;
    Ok(())
}
