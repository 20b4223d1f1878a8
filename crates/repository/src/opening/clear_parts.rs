//! What a repository says of itself in clear, without which nothing in it opens: the marker, the configuration and the
//! newest set of wrappings. Each is there twice, so that no flipped bit and no file that is gone loses everything.
//!
//! ```text
//! holdall-repository   config   wrappings/GENERATION      each for itself
//! spare/GENERATION                                        all of it once more
//! ```
//!
//! Configuration and set prove themselves by their signatures. Whoever opens a repository to read takes the copy that
//! is sound; whoever opens it to write also writes the other one anew. The highest generation that has a name in either
//! place counts. If no copy of that one is sound, nothing is opened: an older set would let in again what was taken
//! away.
//!
//! A copy may be sound and another repository's. Those count that fit the newest record. The others are moved to
//! `quarantine/` by the next writer: they may be the last copy of somebody's keys. If none fits a record, nothing is
//! opened.

use std::ffi::OsString;
use std::io;

use bytes::Bytes;
use holdall_format::limits::WRAPPING_SET_MAX_BYTES;
use holdall_format::{
    FormatError, RepositoryConfig, RepositoryId, SPARE_MAX_BYTES, Spare, WrappingSet,
};
use holdall_protocol::{Repair, RepositoryError};

use crate::opening::lease::Lease;
use crate::opening::repository_identity::RecordsOf;
use crate::opening::wrappings::{SignedSet, put_spare};
use crate::pack_file::unreadable;
use crate::records::files;
use crate::state_files::erased::{read_erased, read_own_erased};
use crate::storage::Stored;
use crate::storage::layout::{
    ERASED_MARKER, Layout, MARKER_FRONT, MARKER_TEXT, generations_in, number_of,
};
use crate::storage::publish::{damaged, random};
use crate::storage::retry::split_process_errors;

const CONFIG_MAX_BYTES: u64 = 4 << 10;
const MARKER_MAX_BYTES: u64 = 4 << 10;

/// What a repository says of itself in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClearParts {
    /// The configuration.
    pub(crate) config: RepositoryConfig,
    /// Its bytes as they were signed.
    pub(crate) config_bytes: Bytes,
    /// The newest set of wrappings.
    pub(crate) wrappings: SignedSet,
    /// Copies that are not what they should be, or not there.
    pub(crate) amiss: Vec<Amiss>,
}

/// A copy that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Amiss {
    part: Part,
    /// Its file.
    pub(crate) path: Stored,
    /// What is wrong with it; `None` for a spare that nobody has made yet, or that a crash left behind the set.
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Marker,
    Config,
    Wrappings,
    Spare,
}

/// What the marker says.
enum Marker {
    /// That this is a repository of this version.
    Sound,
    Missing,
    /// That it was erased.
    Erased(RepositoryError),
    /// A version that is to come.
    Other(RepositoryError),
    Damaged(RepositoryError),
}

/// What is wrong with a sound copy that fits no record.
const OF_ANOTHER: &str = "it is another repository's";

/// The configuration in its own file, and its bytes.
type OwnConfig = Result<(RepositoryConfig, Bytes), RepositoryError>;

/// The spare of one generation.
type Kept = (u64, Result<Spare, RepositoryError>);

impl ClearParts {
    /// Reads and checks the parts; needs no lease, since no file is changed in place.
    ///
    /// # Errors
    /// [`RepositoryError::NoRepository`]; [`RepositoryError::Damaged`] if no copy of a part is sound;
    /// [`RepositoryError::OtherFormat`].
    pub(crate) fn read(layout: &Layout) -> Result<Self, RepositoryError> {
        // Between listing and reading, somebody else may have published a set and removed the rest.
        match Self::read_listed(layout) {
            Err(RepositoryError::Damaged { .. }) => Self::read_listed(layout),
            read => read,
        }
    }

    fn read_listed(layout: &Layout) -> Result<Self, RepositoryError> {
        let mut amiss = Vec::new();
        let spares = spares(layout)?;
        let is_spared = spares.iter().any(|(_, spare)| spare.is_ok());
        check_marker_beside(layout, is_spared, &mut amiss)?;
        let own = own_config(layout)?;
        let repository = repository_of(layout, &own, &spares)?;
        let (config, config_bytes) = config_of(layout, own, &spares, repository, &mut amiss)?;
        let wrappings = newest_set(layout, &config, &config_bytes, &spares, &mut amiss)?;
        Ok(Self { config, config_bytes, wrappings, amiss })
    }

    /// Writes the copies anew that are not what they should be, and names those of them that were damaged. What cannot
    /// be written stays as it is, and is told by the next check: it keeps nobody from the repository.
    ///
    /// # Errors
    /// [`RepositoryError::InUse`] once somebody else took the lease.
    pub(crate) fn repair(
        &self,
        layout: &Layout,
        lease: &Lease,
    ) -> Result<Vec<Repair>, RepositoryError> {
        let mut repairs = Vec::new();
        if self.amiss.is_empty() {
            return Ok(repairs);
        }
        lease.renew()?;
        if put_foreign_aside(layout, self.config.repository).is_err() {
            return Ok(repairs);
        }
        for Amiss { part, path, reason } in &self.amiss {
            let repaired = match part {
                Part::Marker => path.replace(MARKER_TEXT.as_bytes()),
                Part::Config => path.replace(&self.config_bytes),
                Part::Wrappings => path.replace(&self.wrappings.bytes),
                Part::Spare => put_spare(layout, &self.config_bytes, &self.wrappings),
            };
            if repaired.is_ok() && reason.is_some() {
                repairs.push(Repair::Copy { file: path.display().to_string() });
            }
        }
        Ok(repairs)
    }
}

/// Moves configuration, sets and spares that are sound and another repository's to `quarantine/`.
///
/// # Errors
/// What keeps one from being moved.
pub(crate) fn put_foreign_aside(
    layout: &Layout,
    repository: RepositoryId,
) -> Result<(), RepositoryError> {
    let of_config = |bytes: &[u8]| Some(RepositoryConfig::decode_signed(bytes).ok()?.repository);
    let of_set = |bytes: &[u8]| Some(WrappingSet::decode_signed(bytes).ok()?.repository);
    let of_spare = |bytes: &[u8]| Some(Spare::decode(bytes).ok()?.config.repository);
    put_aside_if_of_another(layout, &layout.config(), "config", repository, of_config)?;
    for generation in generations_in(&layout.wrappings())? {
        let (path, name) =
            (layout.wrappings_of(generation), format!("wrappings-{generation:016x}"));
        put_aside_if_of_another(layout, &path, &name, repository, of_set)?;
    }
    for generation in generations_in(&layout.spares())? {
        let (path, name) = (layout.spare_of(generation), format!("spare-{generation:016x}"));
        put_aside_if_of_another(layout, &path, &name, repository, of_spare)?;
    }
    Ok(())
}

fn put_aside_if_of_another(
    layout: &Layout,
    path: &Stored,
    name: &str,
    repository: RepositoryId,
    repository_of: impl Fn(&[u8]) -> Option<RepositoryId>,
) -> Result<(), RepositoryError> {
    let bytes = path.read_limited(SPARE_MAX_BYTES as u64).ok().flatten();
    let of = bytes.and_then(|bytes| repository_of(&bytes));
    if of.is_none_or(|of| of == repository) {
        return Ok(());
    }
    let number = u32::from_le_bytes(random()?);
    path.rename(&layout.quarantine().join(format!("{name}.{number:08x}")))
}

/// The highest generation that a set or a spare is named by; `None` if there is none.
pub(crate) fn highest_generation(layout: &Layout) -> Result<Option<u64>, RepositoryError> {
    let [sets, spares] = [layout.wrappings(), layout.spares()];
    Ok(generations_in(&sets)?.into_iter().chain(generations_in(&spares)?).max())
}

/// Checks that there is a repository of a version that this program knows.
///
/// # Errors
/// As for [`ClearParts::read`].
pub(crate) fn check_marker(layout: &Layout) -> Result<(), RepositoryError> {
    match read_marker(layout)? {
        Marker::Sound => Ok(()),
        Marker::Erased(error) => Err(error),
        _ => ClearParts::read(layout).map(drop),
    }
}

fn check_marker_beside(
    layout: &Layout,
    is_spared: bool,
    amiss: &mut Vec<Amiss>,
) -> Result<(), RepositoryError> {
    let marker = read_marker(layout)?;
    if !matches!(marker, Marker::Sound)
        && let Some(erased) = read_own_erased(layout)?
    {
        // Whatever became of the marker: who has the keys signed that.
        return Err(layout.no_repository_since(Some(erased)));
    }
    let reason = match marker {
        Marker::Sound => return Ok(()),
        Marker::Erased(error) => return Err(error),
        Marker::Missing if is_spared => "it is missing".to_owned(),
        Marker::Missing if holds_records(layout)? => "it is missing beside backups".to_owned(),
        Marker::Missing => return Err(layout.no_repository()),
        // A spare is of this version: then the marker is what is wrong.
        Marker::Other(error) if !is_spared => return Err(error),
        Marker::Other(error) | Marker::Damaged(error) => error.to_string(),
    };
    amiss.push(Amiss { part: Part::Marker, path: layout.marker(), reason: Some(reason) });
    Ok(())
}

fn read_marker(layout: &Layout) -> Result<Marker, RepositoryError> {
    let path = layout.marker();
    let is_no_folder = |error: &io::Error| error.kind() == io::ErrorKind::NotADirectory;
    Ok(match split_process_errors(path.read_limited(MARKER_MAX_BYTES))? {
        Ok(Some(text)) if text == MARKER_TEXT.as_bytes() => Marker::Sound,
        Ok(Some(text)) if text == ERASED_MARKER.as_bytes() => {
            Marker::Erased(layout.no_repository_since(read_erased(layout)?))
        }
        Ok(Some(text)) => match version_of(&text) {
            Some(found) => {
                let what = "the repository";
                let error = FormatError::UnsupportedVersion { what, found, supported: 1 };
                Marker::Other(unreadable(&path, &error))
            }
            None => {
                Marker::Damaged(damaged(&path, "it does not say which version the repository has"))
            }
        },
        Ok(None) => Marker::Missing,
        // The root itself is no folder.
        Err(RepositoryError::Io { source, .. }) if is_no_folder(&source) => Marker::Missing,
        Err(error) => Marker::Damaged(error),
    })
}

/// The version that a marker names, if it names one.
fn version_of(text: &[u8]) -> Option<u32> {
    let version = text.strip_prefix(MARKER_FRONT.as_bytes())?;
    std::str::from_utf8(version).ok()?.trim_end().parse().ok()
}

/// Whether somebody's backups are there, with a marker or without.
pub(crate) fn holds_records(layout: &Layout) -> Result<bool, RepositoryError> {
    let is_record = |name: &OsString| name.to_str().is_some_and(|name| number_of(name).is_some());
    match layout.records().names() {
        Ok(names) => Ok(names.iter().any(is_record)),
        // What is no directory holds none.
        Err(RepositoryError::Damaged { .. }) => Ok(false),
        Err(RepositoryError::Io { source, .. })
            if source.kind() == io::ErrorKind::NotADirectory =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// All spares, those of the newest sets last.
fn spares(layout: &Layout) -> Result<Vec<Kept>, RepositoryError> {
    let Ok(generations) = split_process_errors(generations_in(&layout.spares()))? else {
        return Ok(Vec::new());
    };
    let read = |generation: u64| -> Result<Kept, RepositoryError> {
        let path = layout.spare_of(generation);
        let bytes = split_process_errors(path.read_limited(SPARE_MAX_BYTES as u64))?;
        let spare = bytes.and_then(|bytes| {
            let spare = Spare::decode(&bytes.unwrap_or_default());
            let spare = spare.map_err(|error| unreadable(&path, &error))?;
            match spare.wrappings.generation == generation {
                true => Ok(spare),
                false => Err(damaged(&path, "it is not the one of this generation")),
            }
        });
        Ok((generation, spare))
    };
    generations.into_iter().map(read).collect()
}

/// What the file of the configuration says.
fn own_config(layout: &Layout) -> Result<OwnConfig, RepositoryError> {
    let path = layout.config();
    split_process_errors(path.read_limited(CONFIG_MAX_BYTES)).map(|read| {
        let bytes = read?.ok_or_else(|| damaged(&path, "it is missing"))?;
        let config = RepositoryConfig::decode_signed(&bytes);
        Ok((config.map_err(|error| unreadable(&path, &error))?, Bytes::from(bytes)))
    })
}

/// The repository that is here, of those that configuration and spares are of; `None` if none of these is sound.
fn repository_of(
    layout: &Layout,
    own: &OwnConfig,
    spares: &[Kept],
) -> Result<Option<RepositoryId>, RepositoryError> {
    let own = own.as_ref().ok().map(|(config, _)| config);
    let of_spares = spares.iter().rev().filter_map(|(_, spare)| spare.as_ref().ok());
    let mut candidates: Vec<_> = of_spares.map(|spare| spare.config.repository).collect();
    candidates.splice(..0, own.map(|config| config.repository));
    let Some(&first) = candidates.first() else { return Ok(None) };
    match RecordsOf::newest_first(repositories_of_records(layout)?, &candidates)? {
        RecordsOf::Candidate(repository) => Ok(Some(repository)),
        RecordsOf::Another(other) => {
            let reason =
                format!("it is of another repository than the records, which are of {other}");
            Err(damaged(&layout.config(), reason))
        }
        RecordsOf::Nobody => {
            let is_split = candidates.iter().any(|other| *other != first);
            match own.filter(|_| is_split) {
                None => Ok(Some(first)),
                Some(own) if has_own_set(layout, own)? => Err(damaged(
                    &layout.config(),
                    "it and its spare are of two repositories, and no record shows which one this is: move away what \
                     is the other's, the configuration with its wrappings or the spare",
                )),
                Some(own) => Ok(candidates.into_iter().find(|other| *other != own.repository)),
            }
        }
    }
}

/// Whose each record is that can be read, from the newest on.
fn repositories_of_records(
    layout: &Layout,
) -> Result<impl Iterator<Item = Result<RepositoryId, RepositoryError>>, RepositoryError> {
    let positions = split_process_errors(files::positions(layout))?.unwrap_or_default();
    let read = |position| match split_process_errors(files::read_head(layout, position)) {
        Ok(Ok(head)) => Some(Ok(head.repository)),
        Ok(Err(_)) => None,
        Err(error) => Some(Err(error)),
    };
    Ok(positions.into_iter().rev().filter_map(read))
}

/// Whether the newest set is of that configuration.
fn has_own_set(layout: &Layout, config: &RepositoryConfig) -> Result<bool, RepositoryError> {
    let newest =
        split_process_errors(generations_in(&layout.wrappings()))?.unwrap_or_default().pop();
    let Some(generation) = newest else { return Ok(false) };
    Ok(split_process_errors(read_set(layout, config, generation))?.is_ok())
}

/// The configuration of the `repository` that is here, from its own file or else from a spare.
fn config_of(
    layout: &Layout,
    own: OwnConfig,
    spares: &[Kept],
    repository: Option<RepositoryId>,
    amiss: &mut Vec<Amiss>,
) -> Result<(RepositoryConfig, Bytes), RepositoryError> {
    let path = layout.config();
    let error = match own {
        Ok(own) if Some(own.0.repository) == repository => return Ok(own),
        Ok(_) => damaged(&path, OF_ANOTHER),
        Err(error) => error,
    };
    let mut sound = spares.iter().rev().filter_map(|(_, spare)| spare.as_ref().ok());
    let Some(spare) = sound.find(|spare| Some(spare.config.repository) == repository) else {
        return Err(error);
    };
    amiss.push(Amiss { part: Part::Config, path, reason: Some(error.to_string()) });
    Ok((spare.config.clone(), Bytes::from(spare.config_bytes.clone())))
}

/// The set of the highest generation, from its own file or else from its spare.
fn newest_set(
    layout: &Layout,
    config: &RepositoryConfig,
    config_bytes: &Bytes,
    spares: &[Kept],
    amiss: &mut Vec<Amiss>,
) -> Result<SignedSet, RepositoryError> {
    let own = split_process_errors(generations_in(&layout.wrappings()))?;
    let own_highest = own.as_ref().ok().and_then(|generations| generations.last().copied());
    let is_foreign = |spare: &Kept| {
        spare.1.as_ref().is_ok_and(|spare| spare.config.repository != config.repository)
    };
    let newest_spare = spares.iter().rev().find(|spare| !is_foreign(spare));
    let highest = own_highest.max(newest_spare.map(|(generation, _)| *generation));
    let Some(generation) = highest else {
        return Err(own
            .err()
            .unwrap_or_else(|| damaged(&layout.wrappings(), "no set of wrappings is there")));
    };
    let own = split_process_errors(read_set(layout, config, generation))?;
    let spare = spares.iter().find(|(named, _)| *named == generation);
    let spared = match spare.map(|(_, spare)| spare) {
        Some(Ok(spare)) if spare.config_bytes == **config_bytes => Some(spare),
        _ => None,
    };
    if spared.is_none() {
        let reason = spare.map(|(_, spare)| match spare {
            Ok(spare) if spare.config.repository == config.repository => {
                "it has another configuration".to_owned()
            }
            Ok(_) => OF_ANOTHER.to_owned(),
            Err(error) => error.to_string(),
        });
        amiss.push(Amiss { part: Part::Spare, path: layout.spare_of(generation), reason });
    }
    match (own, spared) {
        (Ok(own), _) => Ok(own),
        (Err(error), Some(spare)) => {
            let (path, reason) = (layout.wrappings_of(generation), Some(error.to_string()));
            amiss.push(Amiss { part: Part::Wrappings, path, reason });
            let bytes = Bytes::from(spare.wrappings_bytes.clone());
            Ok(SignedSet { set: spare.wrappings.clone(), bytes })
        }
        (Err(error), None) => Err(error),
    }
}

fn read_set(
    layout: &Layout,
    config: &RepositoryConfig,
    generation: u64,
) -> Result<SignedSet, RepositoryError> {
    let path = layout.wrappings_of(generation);
    let bytes = path.read_limited(WRAPPING_SET_MAX_BYTES as u64)?;
    let bytes = Bytes::from(bytes.ok_or_else(|| damaged(&path, "it is missing"))?);
    match SignedSet::decode(&bytes, config) {
        Ok(set) if set.set.generation == generation => Ok(set),
        Ok(_) | Err(None) => {
            Err(damaged(&path, "it is not the set of this repository and generation: move it away"))
        }
        Err(Some(error)) => Err(unreadable(&path, &error)),
    }
}
