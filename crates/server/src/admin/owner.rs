//! Acting as whoever the server's data folder belongs to.
//!
//! What a command leaves in the folder, the server must be able to use. So root becomes the folder's
//! owner for a command that is carried out without a server, and anybody else is turned away.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use holdall_sys::thread;
use holdall_sys::users::{Users, become_user, effective_uid};

use crate::ServerError;
use crate::data_folder::DataFolder;

const ROOT: u32 = 0;

/// Turns away whoever is neither the owner of the data folder nor root.
///
/// # Errors
/// [`ServerError::Refused`] with whom to run the command as.
pub(super) fn refuse_others(data_dir: &Path) -> Result<(), ServerError> {
    let me = effective_uid();
    match DataFolder::owner_at(data_dir).map(|owner| owner.uid()) {
        Some(owner) if me != ROOT && me != owner => Err(ServerError::refused(format!(
            "{} belongs to {1}; run it as {1}",
            data_dir.display(),
            user_name(owner)
        ))),
        _ => Ok(()),
    }
}

/// Does `work` as the owner of the data folder; where there is no folder, as whoever asks.
///
/// # Errors
/// Those of `work`, and what keeps root from acting as somebody else.
pub(super) fn as_owner<T: Send>(
    data_dir: &Path,
    work: impl FnOnce() -> Result<T, ServerError> + Send,
) -> Result<T, ServerError> {
    let me = effective_uid();
    let Some(owner) = DataFolder::owner_at(data_dir).filter(|owner| owner.uid() != me) else {
        return work();
    };
    // A thread of its own, so that only this command is somebody else's.
    std::thread::scope(|scope| {
        let started = thread::start(scope, || work_as(&owner, data_dir, work))
            .map_err(|source| ServerError::io("acting as the owner of", data_dir, source))?;
        started.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn work_as<T>(
    owner: &Metadata,
    data_dir: &Path,
    work: impl FnOnce() -> Result<T, ServerError>,
) -> Result<T, ServerError> {
    become_user(owner.uid(), owner.gid())
        .map_err(|source| ServerError::io("acting as the owner of", data_dir, source))?;
    work()
}

fn user_name(uid: u32) -> String {
    let users = Users::load().unwrap_or_default();
    let name = users.user_name(uid).map(|name| String::from_utf8_lossy(name).into_owned());
    name.unwrap_or_else(|| format!("the user {uid}"))
}
