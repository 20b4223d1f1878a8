//! `holdall pair --kit FILE`: what a recovery kit is for, to read only.
//!
//! The kit pins the server that it was made for. Where that server is gone for good and the repository
//! lies on another, `--again` takes the identity that is shown instead, and people compare its
//! fingerprint. A false server learns nothing by that: the kit's secret is not sent, it signs in and
//! opens. And it can show no other repository: what is opened must be wrapped for the kit's secret,
//! and configuration and wrappings must be signed by keys that this key ring derives.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use holdall_crypto::{KeyRing, RecoveryKit, SigningKey};
use holdall_engine::{EngineError, LockedRepository, remade_repository, with_new_config};
use holdall_format::WrappingSet;
use holdall_protocol::{
    MachineIdentity, RepositoryError, ServerAddress, fingerprint, shown_identity,
};
use holdall_repository::{newest_generation_in, newest_wrappings_in};
use holdall_state::KeptKeys;
use serde::Serialize;

use super::{Summary, keep, kit_file};
use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::open::{self, Opened, Patience, Where};

/// What a repository was given.
const CONFIG_ANEW: &str = "had lost its configuration, and has a new one, made from the recovery kit: its passwords, kits \
                           and keys are what they were";
const KEYS_ANEW: &str = "had lost its configuration or its keys, and has new ones, made from the recovery kit: no other \
                         password, kit or key opens it until it is added again with `holdall key add`";

/// Gives read-only access to what a recovery kit is for. `-r` names the server or directory where
/// the repository is now, if that is not what the kit says.
pub(super) fn pair(app: &App, file: &Path, again: bool, wants_default: bool) -> Result<Exit> {
    let kit = kit_file::read(file)?;
    let Some(mut address) = server_of(app, &kit)? else { return in_directory(app, &kit) };
    let signing = Arc::new(kit.secret.signing_key());
    if again {
        address = shown_by(app, address, &signing)?;
    }
    let place = open::place_at(app, address.clone(), signing, Patience::default());
    let place = place.map_err(|error| open::hint_at_kit(error, again))?;
    let wrappings = place.wrappings().map_err(|error| open::hint_at_kit(error.into(), again))?;
    let ring = kit.open(&wrappings)?;
    keep(app, (&address, None), place, &ring, (true, wants_default))?;
    Ok(Exit::Done)
}

/// The server that a kit is for, looked for first where `-r` says; `None` if the repository is in a directory.
pub(in crate::commands) fn server_of(
    app: &App,
    kit: &RecoveryKit,
) -> Result<Option<ServerAddress>> {
    let (identity, named) = match (kit.server_identity, named_place(app)?) {
        (Some(identity), Some(Where::Server { host, name })) => (identity, Some((host, name))),
        (Some(identity), None) => (identity, None),
        (_, Some(Where::Directory(_))) | (None, _) => return Ok(None),
    };
    let mut hosts = kit.server_addresses.clone();
    let mut repository = Some(kit.repository_name.clone());
    if let Some((host, name)) = named {
        hosts.retain(|other| *other != host);
        hosts.insert(0, host);
        repository = Some(name).filter(|name| !name.is_empty()).or(repository);
    }
    Ok(Some(ServerAddress { hosts, identity, repository }))
}

/// The repository that a kit is for, in the directory that was named.
///
/// # Errors
/// [`Refusal`] if none was named.
pub(in crate::commands) fn directory_of(app: &App) -> Result<Opened> {
    if app.named_repository().is_none() {
        return Err(Refusal::new(Exit::Usage, "the kit is for a repository in a directory")
            .hint("say with -r where that directory is now")
            .into());
    }
    open::place(app, Patience::default())
}

/// Where the repository was said to be: a directory only for this command, since one that environment or settings
/// name is another repository.
fn named_place(app: &App) -> Result<Option<Where>> {
    let named = app.named_repository().map(Where::parse).transpose()?;
    let is_typed = app.typed_repository().is_some();
    Ok(named.filter(|named| is_typed || matches!(named, Where::Server { .. })))
}

/// The same address with the identity that is shown there, which people compare.
fn shown_by(app: &App, address: ServerAddress, signing: &SigningKey) -> Result<ServerAddress> {
    #[derive(Serialize)]
    struct Shown {
        address: String,
        identity: String,
        former_identity: String,
    }
    let machine = MachineIdentity::from_seed(signing.seed())?;
    // Where the server was named, only that one is asked: others may be the former one's.
    let asked = match named_place(app)? {
        Some(_) => address.hosts.get(..1).unwrap_or_default(),
        None => &address.hosts[..],
    };
    let identity = shown_identity(asked, &machine, &Patience::default().options(app))?;
    let shown = Shown {
        address: address.to_string(),
        identity: fingerprint(&identity),
        former_identity: fingerprint(&address.identity),
    };
    app.output.object("server_identity", &shown)?;
    app.output.say(format_args!("the recovery kit is for {}", shown.former_identity))?;
    app.output.say(format_args!("the server is now       {}", shown.identity))?;
    if identity != address.identity {
        app.output.note("compare the second line with what `holdall serve` prints on the server");
    }
    Ok(ServerAddress { hosts: asked.to_vec(), identity, ..address })
}

/// Gives a repository in a directory back what it has lost of what it says of itself, from the kit alone: a configuration,
/// and the set of wrappings that is there still, or else one for this kit. Says in words what it did.
fn made_anew(
    place: &LockedRepository,
    kit: &RecoveryKit,
    folder: &Path,
) -> Result<(KeyRing, &'static str)> {
    if let Some(wrappings) = newest_wrappings_in(folder)? {
        let ring = kit.open(&WrappingSet::decode_signed(&wrappings)?)?;
        place.put_back(&with_new_config(&ring, wrappings)?)?;
        return Ok((ring, CONFIG_ANEW));
    }
    let generation = newest_generation_in(folder)?.saturating_add(1);
    let (ring, known) = remade_repository(kit, generation)?.context("the kit has no keys")?;
    place.put_back(&known)?;
    Ok((ring, KEYS_ANEW))
}

/// A repository in a directory needs no server's leave: its key is enough.
fn in_directory(app: &App, kit: &RecoveryKit) -> Result<Exit> {
    let Opened { place, name, repository_name: folder, .. } = directory_of(app)?;
    let ring = match place.wrappings() {
        Err(error) if matches!(error, EngineError::Repository(RepositoryError::Damaged { .. })) => {
            let made = made_anew(&place, kit, Path::new(&folder));
            let (ring, in_words) = made.map_err(|_| error)?;
            app.output.note(format_args!("{name} {in_words}"));
            ring
        }
        wrappings => kit.open(&wrappings?)?,
    };
    let access = place.open(&ring)?;
    KeptKeys::in_state(&app.folders.state).keep(kit.repository, &ring)?;
    app.output.object("summary", &Summary::of(&access, name.clone()))?;
    app.output
        .say(format_args!("the key of {name} is kept on this machine: no password is needed"))?;
    Ok(Exit::Done)
}
