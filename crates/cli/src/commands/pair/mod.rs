//! `holdall pair`.

pub(super) mod by_kit;
mod former;
mod given_invite;
pub(super) mod kit_file;
mod lost_identity;
mod short_code;
mod traded_invite;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use holdall_crypto::KeyRing;
use holdall_engine::{EngineError, LockedRepository, UnlockedRepository};
use holdall_format::WrappingSet;
use holdall_protocol::{Invite, MachineIdentity, Paired, RepositoryError, ServerAddress};
use holdall_state::{KeptKeys, Pairing, Pairings};
use serde::Serialize;

use crate::app::{App, Preset};
use crate::arguments::machine_name;
use crate::exit::{Exit, Refusal};
use crate::lab::remembered;
use crate::opening::create::Cipher;
use crate::opening::open::{self, Patience, Where};
use crate::opening::unlock;
use crate::report::listing;
use crate::secrets::password::take_new;
use crate::terminal::confirm::confirm;
use former::Former;
use kit_file::KitFile;
pub(crate) use kit_file::NamedKit;

/// Pairs this machine with a server, by an invite or a short code of its administrator
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall pair                              (lists servers, asks for invite or code)
          holdall pair - --write-kit kit.txt        (asks, too, or takes it from a pipe)
          holdall pair -r https://attic             (the server that a short code is for)
          holdall pair --again                      (the server was set up anew)
          holdall pair --default -r https://attic   (a paired repository becomes the default one)
          holdall pair --kit kit.txt                (on a new computer, to restore)
          holdall pair - --kit kit.txt              (a new computer in the place of the old one)

An invite in the command line can be seen there by all users of this computer while the command runs.

A short code (`holdall invite --short`) is for the server that was found, or is named with -r. It has one try: typed wrong, or \
with someone between here and the server, it is spent, and nothing is paired. If it was right, and pairing fails after that, the \
same code may be given again on this computer.

The machine's repository on the server is made if it does not exist: with the password, if one is \
given, else with a key that is kept on this machine. The first one becomes the default repository, and stays it until \
--default says otherwise; on a terminal it is asked. An invite \
for an existing repository (`holdall invite --for MACHINE`) needs its password or its recovery kit. \
Without an invite, the kit gives read-only access to what it is for; an invite makes it whole.

Exit codes: 0 done, 1 failed, 2 not an invite, 10 no such repository, 11 in use, 12 wrong password or \
kit for an existing repository, 13 the invite or short code was used, has expired or is wrong, or the server is \
another one, 14 server unreachable, 20 the repository is not as this machine remembers it, \
130 interrupted")]
pub(crate) struct Args {
    /// The invite or the short code: the last line that `holdall invite` printed on the server; `-` takes it from
    /// standard input [default: it is asked for, unless a kit is given]
    #[arg(value_name = "INVITE")]
    invite: Option<String>,
    /// This machine's name for people [default: the invite's, or a made-up one]
    #[arg(long, value_name = "NAME", value_parser = machine_name::parse)]
    name: Option<String>,
    /// Writes the recovery kit of a new repository to this new file; if its name ends in .html, as a page to print with
    /// a QR code [default: it is printed once]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kit", "recovery_kit"])]
    write_kit: Option<PathBuf>,
    /// Reads the recovery kit of a repository that exists; without an invite, to restore only
    #[arg(long, value_name = "FILE", conflicts_with = "recovery_kit")]
    kit: Option<PathBuf>,
    /// As --write-kit with an invite for a new repository, else as --kit
    #[arg(long, value_name = "FILE")]
    recovery_kit: Option<PathBuf>,
    /// Reconnects to a server that was set up anew: accepts its new identity and keeps this machine's repository
    #[arg(long)]
    again: bool,
    /// Makes the repository the default one, in place of another; without an invite, one that is paired and named with -r
    #[arg(long)]
    default: bool,
    /// A new repository, though this machine has one on a server at that address, which lost its identity
    #[arg(long, conflicts_with = "again")]
    new: bool,
    /// The cipher of a repository that is made: ChaCha20 if a computer without instructions for AES will use
    /// it, such as a Raspberry Pi 4 [default: the one that is fastest on this computer]
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<Cipher>,
}

impl Args {
    fn kit_file(&self) -> NamedKit<'_> {
        match (&self.write_kit, &self.kit, &self.recovery_kit) {
            (Some(file), ..) => NamedKit::Write(file),
            (_, Some(file), _) => NamedKit::Read(file),
            (_, _, Some(file)) => NamedKit::Either(file),
            _ => NamedKit::None,
        }
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let kit_file = args.kit_file();
    let is_for_machine = args.name.is_some() || args.cipher.is_some();
    let named =
        app.typed_repository().filter(|_| args.default && matches!(kit_file, NamedKit::None));
    if let (None, Some(named)) = (args.invite.as_deref(), named) {
        return prefer(app, named);
    }
    match (args.invite.as_deref(), kit_file.to_read()) {
        (None, Some(_)) if is_for_machine => Err(Refusal::new(
            Exit::Usage,
            "--name and --cipher are for an invite, and a recovery kit alone only reads",
        )
        .hint("leave them out, or give the invite too: `holdall pair - --kit FILE`")
        .into()),
        (None, Some(kit_file)) => by_kit::pair(app, kit_file, args.again, args.default),
        (invite, _) => {
            let given = short_code::invite(app, invite, kit_file)?;
            let invite = &given.invite;
            let name = args.name.as_deref().unwrap_or_default();
            let Args { again, new, default, cipher, .. } = *args;
            let by = ByInvite { invite, name, kit_file, again, new, default, cipher };
            given.ended(app, pair(app, &by))
        }
    }
}

/// What pairing by an invite is told.
pub(crate) struct ByInvite<'a> {
    /// Its text.
    pub(crate) invite: &'a str,
    /// The machine's name for people; empty takes the invite's.
    pub(crate) name: &'a str,
    /// Where the recovery kit is, or is to be written.
    pub(crate) kit_file: NamedKit<'a>,
    /// Whether the machine was paired with that server before it lost something.
    pub(crate) again: bool,
    /// Whether a new repository is meant though it was.
    pub(crate) new: bool,
    /// Whether the repository is to be the default one.
    pub(crate) default: bool,
    /// The cipher of a repository that is made.
    pub(crate) cipher: Option<Cipher>,
}

/// Pairs by an invite.
///
/// # Errors
/// What keeps the machine from being paired; the same invite may be used again then.
pub(crate) fn pair(app: &App, by: &ByInvite<'_>) -> Result<Exit> {
    let invite = Invite::from_text(by.invite).map_err(|error| {
        Refusal::new(Exit::Usage, error.to_string())
            .hint("it is the last line that `holdall invite` prints on the server, all of it; a short code has nine digits")
    })?;
    let again = by.again || (!by.new && lost_identity::is_meant_again(app, &invite)?);
    let kit = KitFile::of(app, by.kit_file, &invite, again)?;
    let former = again.then(|| Former::of(app, &invite)).transpose()?;
    let signing = app.identity()?.signing;
    let machine = MachineIdentity::from_seed(signing.seed())?;
    let patience = Patience::default();
    let options = patience.clone().options(app);
    let paired = match former.as_ref().and_then(|former| former.account.as_ref()) {
        Some(had) => holdall_protocol::pair_again(&invite, had, by.name, &machine, options),
        None => holdall_protocol::pair(&invite, by.name, &machine, options),
    };
    let paired = paired.map_err(of_invite)?;
    let place = open::place_at(app, paired.address.clone(), signing, patience)?;
    let ring = obtain_ring(app, &paired, &place, (&kit, by.cipher), former.as_ref())?;
    let wants_default = match &former {
        Some(former) => by.default || former.was_default(app)?,
        None => by.default,
    };
    let machine = Some(format!("{:.12}", paired.machine.to_string()));
    let access = keep(app, (&paired.address, machine), place, &ring, (false, wants_default))?;
    if former.is_some() {
        forget_others(app, &access)?;
        // The pairing stays even if something is missing, as a backup would go on, too.
        listing::shown(app, &access)?;
        app.output.note(
            "the recovery kit names what the server was before: it still opens the repository, \
             with `holdall pair --kit FILE --again`",
        );
    }
    let (name, server) = (&paired.name, &paired.server);
    app.output.say(format_args!("this machine is {name} at {server}"))?;
    Ok(Exit::Done)
}

/// Says of a server with another identity that it is not the invite's: this machine knew none before.
fn of_invite(error: RepositoryError) -> anyhow::Error {
    let RepositoryError::WrongServer { address } = error else { return error.into() };
    let hint = "make the invite with the data folder of the server that runs there (`holdall invite \
                --data DIR`); if that was done, somebody may be listening in";
    let message = format!("the server at {address} is not the one that made this invite");
    Refusal::new(Exit::NotAllowed, message).hint(hint).into()
}

/// The key ring of the machine's repository, which is made if it does not exist.
fn obtain_ring(
    app: &App,
    paired: &Paired,
    place: &LockedRepository,
    (kit, cipher): (&KitFile<'_>, Option<Cipher>),
    former: Option<&Former>,
) -> Result<KeyRing> {
    let name = &paired.repository;
    match (place.wrappings(), former) {
        (Ok(set), former) => {
            former.map_or(Ok(()), |former| former.check(set.repository, name))?;
            open_existing(app, paired, &set, kit, former.is_some())
        }
        (Err(EngineError::Repository(RepositoryError::NoRepository { .. })), Some(former)) => {
            Err(former.is_gone(name).into())
        }
        (Err(EngineError::Repository(RepositoryError::NoRepository { .. })), None) => {
            let kit_file = kit.to_write(name)?;
            let password = app.passwords.given()?;
            password.iter().try_for_each(|password| take_new(&app.output, password))?;
            let password = password.as_ref().map(|password| password.as_str());
            let new = kit.new_keys(cipher);
            let server = Some((&paired.address.hosts[..], paired.address.identity));
            // The key is kept before it protects anything.
            KeptKeys::in_state(&app.folders.state).keep(new.ring.repository(), &new.ring)?;
            new.create(app, place, password, server, name, kit_file)?;
            Ok(new.ring)
        }
        (Err(error), _) => Err(open::hint_at_copies(error, false)),
    }
}

/// The key ring of a repository that exists: from its kit, if one is given, as it is kept on
/// this machine, or by the password. A repository that `is_known` is one that this machine had.
fn open_existing(
    app: &App,
    paired: &Paired,
    set: &WrappingSet,
    kit: &KitFile<'_>,
    is_known: bool,
) -> Result<KeyRing> {
    if let Some(kit) = kit.to_open(&paired.repository)? {
        if kit.repository != set.repository {
            let message = format!(
                "the recovery kit is for the repository {}, and {} is {}",
                kit.repository, paired.repository, set.repository
            );
            let refusal = Refusal::new(Exit::WrongKey, message);
            return Err(refusal.hint("take the recovery kit of that repository").into());
        }
        return Ok(kit.open(set)?);
    }
    let known = is_known.then_some(set.repository);
    unlock::key_ring(app, set, &paired.address.to_string(), known)
}

/// A pairing as programs see it.
#[derive(Serialize)]
struct Summary {
    machine: String,
    repository: String,
    place: String,
    fingerprint: String,
    reads_only: bool,
    /// What names another repository as the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    overruled_by: Option<String>,
    /// Whether it is the default one of those that are paired.
    is_default: bool,
}

impl Summary {
    /// Of a repository at `place` that may be written.
    fn of(access: &UnlockedRepository, place: String) -> Self {
        Self {
            machine: access.machine().to_string(),
            repository: access.config().repository.to_string(),
            place,
            fingerprint: access.keys().fingerprint(),
            reads_only: false,
            overruled_by: None,
            is_default: false,
        }
    }
}

/// What environment or settings name as the default repository, if it is another than this one.
fn overruling<'a>(app: &'a App, pairings: &Pairings, repository: &str) -> Option<&'a Preset> {
    let is_this = |preset: &Preset| match Where::parse(&preset.repository) {
        Ok(Where::Server { host, name }) => {
            pairings.find(&host, &name).is_some_and(|pairing| pairing.repository == repository)
        }
        _ => false,
    };
    app.preset().filter(|preset| !is_this(preset))
}

/// Makes a repository that is paired the default one.
fn prefer(app: &App, named: &str) -> Result<Exit> {
    let mut pairings = app.pairings()?;
    let found = match Where::parse(named)? {
        Where::Server { host, name } => pairings.find(&host, &name).cloned(),
        Where::Directory(folder) => return Err(no_default_directory(app, &folder).into()),
    };
    let Some(pairing) = found else {
        let refusal = Refusal::new(Exit::Usage, format!("{named} is no paired repository"));
        return Err(refusal.hint("pair with its server first: `holdall pair --default`").into());
    };
    pairings.prefer(&pairing.repository)?;
    app.output.say(format_args!("the default repository is now {named}"))?;
    Ok(Exit::Done)
}

/// The refusal of a directory as the default: pairing is with servers.
fn no_default_directory(app: &App, folder: &Path) -> Refusal {
    let message = format!("{} is a directory: only a server is paired", folder.display());
    let settings = app.folders.config.join("config.toml");
    Refusal::new(Exit::Usage, message).hint(format!(
        "to make a directory the default, set HOLDALL_REPOSITORY, or write `repository = \"{}\"` into {}",
        folder.display(),
        settings.display()
    ))
}

/// Forgets what else this machine had on the server: the key belongs to the one machine that was paired again.
fn forget_others(app: &App, access: &UnlockedRepository) -> Result<()> {
    let mut pairings = app.pairings()?;
    match pairings.of(&access.config().repository.to_string()).cloned() {
        Some(pairing) => Ok(pairings.keep_alone(&pairing)?),
        None => Ok(()),
    }
}

/// Whether a repository becomes the default one in place of another: if an option or the answer at the terminal says so.
fn becomes_default(
    app: &App,
    pairings: &Pairings,
    pairing: &Pairing,
    is_wanted: bool,
) -> Result<bool> {
    let Some(default) = pairings.default_beside(pairing).filter(|_| !is_wanted) else {
        return Ok(true);
    };
    let question = format!(
        "backups go to {} if nothing else is said. Shall they go here from now on? [y/N] ",
        remembered::address_of(default)
    );
    Ok(confirm(&app.output, &app.interrupt, &question)?.unwrap_or(false))
}

/// Keeps the key and the pairing; the first repository is the default one, another if that `is_wanted`.
fn keep(
    app: &App,
    (address, machine): (&ServerAddress, Option<String>),
    place: LockedRepository,
    ring: &KeyRing,
    (reads_only, is_wanted): (bool, bool),
) -> Result<UnlockedRepository> {
    let signing = Arc::clone(&place.signing);
    let access = place.open(ring)?;
    let repository = access.config().repository;
    let keys = KeptKeys::in_state(&app.folders.state);
    keys.keep(repository, ring)?;
    let mut pairings = app.pairings()?;
    let before = pairings.of(&repository.to_string());
    if reads_only && before.is_some_and(|before| !before.reads_only) {
        if is_wanted {
            pairings.prefer(&repository.to_string())?;
        }
        app.output.note("this machine was paired there by an invite: that stays as it was");
        tell_paired(app, &access, address, false)?;
        return Ok(access);
    }
    let pairing = Pairing {
        addresses: address.hosts.clone(),
        identity: address.identity.to_string(),
        name: address.repository.clone().unwrap_or_default(),
        repository: repository.to_string(),
        reads_only,
        machine,
    };
    let as_default = match reads_only {
        true => is_wanted,
        false => becomes_default(app, &pairings, &pairing, is_wanted)?,
    };
    if reads_only {
        keys.keep_reader(repository, &signing)?;
    }
    pairings.keep(pairing, as_default)?;
    tell_paired(app, &access, address, reads_only)?;
    Ok(access)
}

/// Says what was paired, and which repository is the default one.
fn tell_paired(
    app: &App,
    access: &UnlockedRepository,
    address: &ServerAddress,
    reads_only: bool,
) -> Result<()> {
    let (pairings, repository) = (app.pairings()?, access.config().repository.to_string());
    let other_default = pairings.default_besides(&repository);
    let overruling = overruling(app, &pairings, &repository);
    let summary = Summary {
        reads_only,
        overruled_by: overruling.map(|preset| preset.named_by.clone()),
        is_default: other_default.is_none(),
        ..Summary::of(access, address.to_string())
    };
    app.output.object("summary", &summary)?;
    let place = &summary.place;
    app.output.say(format_args!(
        "{} {place} ({}){}",
        match overruling.is_some() || other_default.is_some() {
            true => "paired with",
            false => "the default repository is now",
        },
        summary.fingerprint,
        if reads_only { ", to read only" } else { "" }
    ))?;
    if let Some(Preset { repository, named_by }) = overruling {
        app.output.note(format_args!(
            "the default repository stays {repository}, which {named_by} names: take that away, or give \
             `-r {place}` with each command"
        ));
    } else if let Some(default) = other_default {
        app.output.note(format_args!(
            "the default repository stays {}: give `-r {place}` with each command that means this one, or change it \
             with `holdall pair --default -r {place}`",
            remembered::address_of(default)
        ));
    }
    Ok(())
}
