//! What `--write-kit`, `--kit` and `--recovery-kit` name: a kit that is read, or one that is to be written.

use std::path::Path;

use anyhow::{Context, Result};
use holdall_crypto::{KeyRing, RecoveryKit};
use holdall_protocol::Invite;
use holdall_state::private_file;
use zeroize::Zeroizing;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use crate::opening::create::{Cipher, NewKeys, check_kit_file};
use crate::opening::unlock::kept_key;

/// The longest recovery kit that is read.
const KIT_MAX_BYTES: u64 = 64 << 10;

/// The file that was named, and what it is meant for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NamedKit<'a> {
    /// None was named.
    None,
    /// To be written, if the repository is new: `--write-kit`.
    Write(&'a Path),
    /// To be read, since the repository exists: `--kit`.
    Read(&'a Path),
    /// Either: `--recovery-kit`.
    Either(&'a Path),
}

impl<'a> NamedKit<'a> {
    /// The file, unless it is to be written.
    pub(crate) fn to_read(self) -> Option<&'a Path> {
        match self {
            Self::Read(file) | Self::Either(file) => Some(file),
            Self::None | Self::Write(_) => None,
        }
    }
}

/// What the file beside an invite is for. A repository that exists is opened with its kit, for one
/// that is made a new kit is written; which of both it will be, the server knows.
pub(crate) enum KitFile<'a> {
    /// None was named.
    None,
    /// It is not there: for the kit of a repository that is made.
    New(&'a Path),
    /// It is a kit: of a repository that exists.
    Existing(&'a Path, RecoveryKit),
    /// It is the kit of a repository that this computer was about to make, when it lost the answer.
    Unfinished(&'a Path, RecoveryKit, KeyRing),
}

impl<'a> KitFile<'a> {
    /// Looks at the file before the invite is used. An invite that names no repository is for a new
    /// one, unless the machine is paired `again`.
    ///
    /// # Errors
    /// [`Refusal`] for a file that is no kit, or is there and would have to be written.
    pub(crate) fn of(app: &App, named: NamedKit<'a>, invite: &Invite, again: bool) -> Result<Self> {
        let (file, may_read) = match named {
            NamedKit::None => return Ok(Self::None),
            NamedKit::Read(file) => return Ok(Self::Existing(file, read(file)?)),
            NamedKit::Write(file) => (file, false),
            NamedKit::Either(file) => (file, true),
        };
        if file.symlink_metadata().is_err() {
            check_kit_file(Some(file))?;
            return Ok(Self::New(file));
        }
        if may_read && (again || !invite.repository.is_empty()) {
            return Ok(Self::Existing(file, read(file)?));
        }
        if let Ok(kit) = read(file)
            && let Some(ring) = unfinished(app, &kit, invite)?
        {
            return Ok(Self::Unfinished(file, kit, ring));
        }
        check_kit_file(Some(file)).map(|()| Self::New(file)).map_err(Into::into)
    }

    /// The keys of a repository that is made: new ones, or those that the kit was drawn with.
    pub(crate) fn new_keys(&self, cipher: Option<Cipher>) -> NewKeys {
        match self {
            Self::Unfinished(_, kit, ring) => NewKeys::again(ring, kit, cipher),
            _ => NewKeys::draw(cipher),
        }
    }

    /// The kit with which a repository that exists is opened, if one was named.
    ///
    /// # Errors
    /// [`Refusal`] for a file that is not there.
    pub(crate) fn to_open(&self, repository: &str) -> Result<Option<&RecoveryKit>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::Existing(_, kit) | Self::Unfinished(_, kit, _) => Ok(Some(kit)),
            Self::New(file) => {
                let file = file.display();
                let message = format!(
                    "{file} is not there, and the repository {repository} exists already: it is \
                     opened with its recovery kit, and no new one is written"
                );
                let hint = "name the kit's file with --kit, or leave it out and give the password; this \
                            computer may use the same invite again";
                Err(Refusal::new(Exit::Failed, message).hint(hint))
            }
        }
    }

    /// Where the kit of a repository that is made is written, or lies already, if a file was named.
    ///
    /// # Errors
    /// [`Refusal`] for a file that is there.
    pub(crate) fn to_write(&self, repository: &str) -> Result<Option<&'a Path>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::New(file) | Self::Unfinished(file, ..) => Ok(Some(file)),
            Self::Existing(file, _) => {
                let file = file.display();
                let message =
                    format!("the repository {repository} is not made yet: {file} is no kit of it");
                let hint = "name a new file with --write-kit for the kit of the new repository; this \
                            computer may use the same invite again";
                Err(Refusal::new(Exit::Failed, message).hint(hint))
            }
        }
    }
}

/// The key ring of a repository that this computer drew for that server and never saw made.
fn unfinished(app: &App, kit: &RecoveryKit, invite: &Invite) -> Result<Option<KeyRing>> {
    let is_paired = app.pairings()?.of(&kit.repository.to_string()).is_some();
    if is_paired || kit.server_identity != Some(invite.identity) {
        return Ok(None);
    }
    kept_key(app, kit.repository)
}

/// Reads a recovery kit.
///
/// # Errors
/// If it is not there or cannot be read; [`Refusal`] if it is no kit.
pub(crate) fn read(file: &Path) -> Result<RecoveryKit> {
    let bytes = private_file::read_named(file, KIT_MAX_BYTES)?;
    let bytes = Zeroizing::new(bytes.with_context(|| format!("{} is not there", file.display()))?);
    let unreadable = |reason: String| {
        Refusal::new(Exit::Usage, format!("{}: {reason}", file.display()))
            .hint("take another copy of the kit, or type it again from \"Version\" on")
    };
    let text =
        std::str::from_utf8(&bytes).map_err(|_| unreadable("a recovery kit is text".into()))?;
    Ok(RecoveryKit::from_text(text).map_err(|error| unreadable(error.to_string()))?)
}
