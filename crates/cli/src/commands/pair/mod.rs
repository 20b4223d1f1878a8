//! `holdall pair`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use holdall_crypto::{MasterSecret, Opening, RecoveryKit, unwrap};
use holdall_engine::{EngineError, Place};
use holdall_protocol::{Invite, MachineIdentity, Paired, RepositoryError, ServerAddress};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::app::App;
use crate::create::{NewKeys, check_kit_file};
use crate::exit::{Exit, Refusal};
use crate::open::{self, Patience};
use crate::pairing::{KeptKeys, Pairing};
use crate::private_file;

/// The longest recovery kit that is read.
const KIT_MAX_BYTES: u64 = 64 << 10;

/// Pairs this machine with a server, by an invite of its administrator
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall pair holdall1-... --recovery-kit kit.txt
          holdall pair --recovery-kit kit.txt       (on a new computer, to restore)

The machine's repository on the server is made if it does not exist: with the password, if one is \
given, else with a key that is kept on this machine. It becomes the default repository. Without an \
invite, the kit gives read-only access to what it is for.

Exit codes: 0 done, 1 failed, 2 not an invite, 10 no such repository, 12 wrong password for an \
existing repository, 13 the invite was used, has expired or is unknown, 14 server unreachable")]
pub(crate) struct Args {
    /// The invite: the last line that `holdall invite` printed on the server
    #[arg(value_name = "INVITE", required_unless_present = "recovery_kit")]
    invite: Option<String>,
    /// This machine's name for people [default: the invite's, or a made-up one]
    #[arg(long, value_name = "NAME", requires = "invite")]
    name: Option<String>,
    /// With an invite: writes the recovery kit to this new file [default: it is printed once];
    /// without one: reads the kit
    #[arg(long, value_name = "FILE")]
    recovery_kit: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    let kit_file = args.recovery_kit.as_deref();
    match (&args.invite, kit_file) {
        (Some(invite), _) => pair(app, invite, args.name.as_deref().unwrap_or_default(), kit_file),
        (None, Some(kit_file)) => recover(app, kit_file),
        (None, None) => Err(Refusal::new(Exit::Usage, "neither an invite nor a kit").into()),
    }
}

/// Pairs by an invite's text; an empty name takes the invite's.
///
/// # Errors
/// What keeps the machine from being paired; the same invite may be used again then.
pub(crate) fn pair(app: &App, invite: &str, name: &str, kit_file: Option<&Path>) -> Result<Exit> {
    let invite =
        Invite::from_text(invite).map_err(|error| Refusal::new(Exit::Usage, error.to_string()))?;
    check_kit_file(kit_file)?;
    let signing = app.identity()?.signing;
    let machine = MachineIdentity::from_seed(signing.seed())?;
    let patience = Patience::default();
    let paired = holdall_protocol::pair(&invite, name, &machine, patience.clone().options(app))?;
    let place = open::place_at(app, paired.address.clone(), signing, patience)?;
    let secret = obtain_secret(app, &paired, &place, kit_file)?;
    keep(app, &paired.address, place, &secret, false)?;
    let (name, server) = (&paired.name, &paired.server);
    app.output.say(format_args!("this machine is {name} at {server}"))?;
    Ok(Exit::Done)
}

/// The master secret of the machine's repository, which is made if it does not exist.
fn obtain_secret(
    app: &App,
    paired: &Paired,
    place: &Place,
    kit_file: Option<&Path>,
) -> Result<MasterSecret> {
    match place.wrappings() {
        Ok(set) => {
            if let Some(kept) = open::kept_key(app, set.repository)? {
                return Ok(kept);
            }
            let password = app.passwords.existing(&paired.address.to_string())?;
            Ok(unwrap(&set, &Opening::Passphrase(&password))?)
        }
        Err(EngineError::Repository(RepositoryError::NoRepository { .. })) => {
            let password = app.passwords.given()?;
            let password = password.as_ref().map(|password| password.as_str());
            let new = NewKeys::draw();
            let server = Some((&paired.address.hosts[..], paired.address.identity));
            // The key is kept before it protects anything.
            KeptKeys::in_state(&app.folders.state).keep(new.keys.repository(), &new.secret)?;
            new.create(app, place, password, server, &paired.repository, kit_file)?;
            Ok(new.secret)
        }
        Err(error) => Err(error.into()),
    }
}

/// Keeps the key, and makes the repository the default one.
fn keep(
    app: &App,
    address: &ServerAddress,
    place: Place,
    secret: &MasterSecret,
    reads_only: bool,
) -> Result<()> {
    #[derive(Serialize)]
    struct Summary {
        machine: String,
        repository: String,
        place: String,
        fingerprint: String,
        reads_only: bool,
    }
    let signing = Arc::clone(&place.signing);
    let access = place.open(secret)?;
    let repository = access.config().repository;
    let keys = KeptKeys::in_state(&app.folders.state);
    keys.keep(repository, secret)?;
    if reads_only {
        keys.keep_reader(repository, &signing)?;
    }
    app.pairings()?.keep(Pairing {
        addresses: address.hosts.clone(),
        identity: address.identity.to_string(),
        name: address.repository.clone().unwrap_or_default(),
        repository: repository.to_string(),
        reads_only,
    })?;
    let summary = Summary {
        machine: access.machine().to_string(),
        repository: repository.to_string(),
        place: address.to_string(),
        fingerprint: access.keys().fingerprint(),
        reads_only,
    };
    app.output.object("summary", &summary)?;
    app.output.say(format_args!(
        "the default repository is now {} ({}){}",
        summary.place,
        summary.fingerprint,
        if reads_only { ", to read only" } else { "" }
    ))?;
    Ok(())
}

/// Gives read-only access to what a recovery kit is for.
fn recover(app: &App, kit_file: &Path) -> Result<Exit> {
    let bytes = private_file::read(kit_file, KIT_MAX_BYTES)?;
    let bytes =
        Zeroizing::new(bytes.with_context(|| format!("{} is not there", kit_file.display()))?);
    let text = std::str::from_utf8(&bytes).context("the recovery kit is not text")?;
    let kit = RecoveryKit::from_text(text)
        .map_err(|error| Refusal::new(Exit::Usage, error.to_string()))?;
    let Some(identity) = kit.server_identity else { return recover_directory(app, &kit) };
    let address = ServerAddress {
        hosts: kit.server_addresses.clone(),
        identity,
        repository: Some(kit.repository_name.clone()),
    };
    let signing = Arc::new(kit.secret.signing_key());
    let place = open::place_at(app, address.clone(), signing, Patience::default())?;
    let secret = kit.open(&place.wrappings()?)?;
    keep(app, &address, place, &secret, true)?;
    Ok(Exit::Done)
}

/// A repository in a directory needs no server's leave: its key is enough.
fn recover_directory(app: &App, kit: &RecoveryKit) -> Result<Exit> {
    if app.named_repository().is_none() {
        return Err(Refusal::new(Exit::Usage, "the kit is for a repository in a directory")
            .hint("say with -r where that directory is now")
            .into());
    }
    let opened = open::place(app, Patience::default())?;
    let secret = kit.open(&opened.place.wrappings()?)?;
    KeptKeys::in_state(&app.folders.state).keep(kit.repository, &secret)?;
    app.output.say(format_args!(
        "the key of {} is kept on this machine: no password is needed",
        opened.name
    ))?;
    Ok(Exit::Done)
}
