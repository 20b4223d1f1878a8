//! From errors to exit codes and to what the user may do next.
//!
//! Scripts branch on exit codes, so each cause has one of its own and keeps it. Errors of the
//! libraries say what failed; which command helps is known only here.

use std::io::ErrorKind;

use holdall_crypto::CryptoError;
use holdall_disks::{DiskError, Reason};
use holdall_engine::EngineError;
use holdall_format::{OneLine, WrappingKind};
use holdall_lab::LabError;
use holdall_lab::report::ReportError;
use holdall_protocol::{Denial, RepositoryError};
use holdall_server::ServerError;
use holdall_state::{NOT_THERE, StateError, StateFile};
use holdall_sys::limits::Lack;
use rustix::io::Errno;

const UPDATE: &str = "another version of holdall wrote it: update this one if it is the older of \
                      the two, and if not, restore with that one and make a new repository";
const MAKE_ROOM: &str = "make room there, then try again: what was stored stays stored; if `df` shows room, see with \
                         `df -i` whether it can hold no more files";

/// What the place of a repository says that was erased.
const WAS_ERASED: &str = ", which was erased";
const GO_ON: &str = "`holdall check --repair` puts it back if its content is still stored; if the repository was set \
                     back to an older copy, `holdall backup` goes on from there, and what came after that copy is lost, \
                     unless whoever keeps the repository has it still";

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done,
    /// It failed, and nothing was committed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// Done, but something could not be read or restored.
    Incomplete,
    /// Measured, and slower than was asked for.
    BelowRate,
    /// No repository is there.
    NoRepository,
    /// Somebody else is writing.
    InUse,
    /// The password or key is wrong.
    WrongKey,
    /// This machine may not do that.
    NotAllowed,
    /// The server cannot be reached.
    Unreachable,
    /// Something is damaged, or differs.
    Damage,
    /// A signal ended it.
    Interrupted,
}

impl Exit {
    /// The number that the system sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::BelowRate => 4,
            Self::NoRepository => 10,
            Self::InUse => 11,
            Self::WrongKey => 12,
            Self::NotAllowed => 13,
            Self::Unreachable => 14,
            Self::Damage => 20,
            Self::Interrupted => 130,
        }
    }
}

/// A failure that the command line finds itself.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    /// How the process ends.
    pub(crate) exit: Exit,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Refusal {
    /// A refusal without a hint.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The exit code that an error deserves.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return refusal.exit;
        }
        if let Some(error) = engine_error(cause) {
            return of_engine(error);
        }
        if let Some(StateError::Gone(_)) = cause.downcast_ref() {
            return Exit::Damage;
        }
        if let Some(error) = cause.downcast_ref::<RepositoryError>() {
            return of_repository(error);
        }
        if let Some(error) = cause.downcast_ref::<CryptoError>() {
            return of_crypto(error);
        }
        if let Some(error) = cause.downcast_ref::<LabError>() {
            return of_lab(error);
        }
        if let Some(error) = cause.downcast_ref::<DiskError>() {
            return of_disk(error);
        }
    }
    Exit::Failed
}

fn of_engine(error: &EngineError) -> Exit {
    match error {
        EngineError::Repository(error) => of_repository(error),
        EngineError::Crypto(error) => of_crypto(error),
        EngineError::Damaged { .. } | EngineError::Lost { .. } | EngineError::Parent(_) => {
            Exit::Damage
        }
        EngineError::Interrupted => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

fn of_repository(error: &RepositoryError) -> Exit {
    match error {
        RepositoryError::NoRepository { .. } => Exit::NoRepository,
        RepositoryError::InUse { .. } => Exit::InUse,
        RepositoryError::NotAllowed { .. } | RepositoryError::WrongServer { .. } => {
            Exit::NotAllowed
        }
        RepositoryError::Unreachable { .. } => Exit::Unreachable,
        RepositoryError::MissingObjects { .. } | RepositoryError::Damaged { .. } => Exit::Damage,
        RepositoryError::Interrupted => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

fn of_lab(error: &LabError) -> Exit {
    match error {
        LabError::Settings(_) => Exit::Usage,
        LabError::Interrupted => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

fn of_disk(error: &DiskError) -> Exit {
    match error {
        DiskError::NoDevice { .. } | DiskError::Label { .. } => Exit::Usage,
        error if error.is_interrupted() => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

fn of_crypto(error: &CryptoError) -> Exit {
    match error {
        CryptoError::WrongKey
        | CryptoError::OtherRepository
        | CryptoError::NoWrapping { .. }
        | CryptoError::Rotated => Exit::WrongKey,
        CryptoError::RecoveryKit { .. } => Exit::Usage,
        CryptoError::Format(error) if error.is_other_version() => Exit::Failed,
        _ => Exit::Damage,
    }
}

/// What the user may do next, where that is known.
pub(crate) fn hint_of(error: &anyhow::Error, known: &KnownNames) -> Option<String> {
    if let Some(refusal) = error.chain().find_map(|cause| cause.downcast_ref::<Refusal>()) {
        return refusal.hint.clone();
    }
    if is_closed_pipe(error) {
        return None;
    }
    if let Some(StateError::Gone(gone)) = state_error(error) {
        return (gone.reason == NOT_THERE).then(|| GO_ON.to_owned());
    }
    if let Some(error) = error.chain().find_map(|cause| cause.downcast_ref()) {
        return of_disk_cause(error);
    }
    if let Some(hint) = hint_of_cause(error) {
        return Some(hint.to_owned());
    }
    let hint = match exit_of(error) {
        Exit::NoRepository if is_on_server(error) => {
            return Some(known.in_hint(BEGIN_ANEW));
        }
        Exit::NoRepository if was_erased(error) => {
            "none begins anew there: name another folder with -r, or remove that one"
        }
        Exit::NoRepository => "make one with `holdall init -r REPO`, or name another with -r",
        Exit::InUse => "another holdall works there: try again when it is done",
        Exit::WrongKey => {
            "check the password (--password-file, HOLDALL_PASSWORD), or the key (--identity)"
        }
        Exit::NotAllowed => {
            return denial(error).and_then(of_denial).map(|hint| known.in_hint(hint));
        }
        Exit::Unreachable => {
            "is `holdall serve` running there, and the address right? If the server has moved: \
             -r https://NEW-ADDRESS:7443/NAME"
        }
        Exit::Damage => "`holdall check --verify all` finds out what is affected",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What helps against a disk that is not taken, or not done.
fn of_disk_cause(error: &DiskError) -> Option<String> {
    let hint = match error {
        DiskError::NotThere { .. } | DiskError::NoDevice { .. } => {
            "`holdall disk list` shows the disks, and by which names"
        }
        DiskError::Refused { reasons, .. } => match &reasons[..] {
            [Reason::Partition { of }] => {
                return Some(format!(
                    "a disk is taken as a whole: if all of it is meant, /dev/{of}"
                ));
            }
            [Reason::System { .. }, ..] => "`holdall disk list` shows which disks are free",
            [Reason::Kernel, ..] => {
                "see what has it: a container or another user's mounts (`lsblk`, `fuser -v`), or a pool of ZFS"
            }
            _ => {
                "`holdall disk list` shows which disks are free; if it is this one, end first what uses it (`umount`, \
                 `swapoff`, `losetup -d`)"
            }
        },
        DiskError::Locked { .. } => "try again in a moment",
        DiskError::Changed { .. } => "look with `holdall disk list` which disk is which now",
        DiskError::Label { .. } => "name another with --label",
        DiskError::Missing { package, .. } => {
            return Some(format!("on Debian: `sudo apt-get install {package}`"));
        }
        DiskError::HalfDone { cause, .. } => return of_disk_cause(cause),
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Whether a server has another identity than the pinned one.
pub(crate) fn is_wrong_server(error: &anyhow::Error) -> bool {
    matches!(repository_error(error), Some(RepositoryError::WrongServer { .. }))
}

/// Whether a server knows nobody of the key that signed in.
pub(crate) fn is_unknown_machine(error: &anyhow::Error) -> bool {
    denial(error) == Some(Denial::UnknownMachine)
}

/// Whether the repository is certain not to have taken what it was given: not so where an answer may
/// have been lost. What this computer's own system forbids, it forbids before anything is made.
pub(crate) fn is_certain(error: &anyhow::Error) -> bool {
    use ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied, ReadOnlyFilesystem};
    use RepositoryError::{InUse, NotAllowed, Refused};
    matches!(repository_error(error), Some(Refused { .. } | NotAllowed { .. } | InUse { .. }))
        || matches!(
            system_error(error),
            Some(AlreadyExists | NotADirectory | PermissionDenied | ReadOnlyFilesystem)
        )
}

/// What helps against a cause that its exit code does not tell from others.
fn hint_of_cause(error: &anyhow::Error) -> Option<&'static str> {
    if let Some(error) = error.chain().find_map(|cause| cause.downcast_ref()) {
        return of_server(error);
    }
    match error.chain().find_map(|cause| cause.downcast_ref()) {
        Some(LabError::NoRoom { .. }) => return Some("ask for less (--size), or make room there"),
        Some(LabError::NotWritable { .. }) => {
            return Some(
                "name a directory that this user may write to, on a disk with room that is not mounted \
                 read-only",
            );
        }
        _ => {}
    }
    if let Some(hint) = state_error(error).and_then(of_state) {
        return Some(hint);
    }
    match repository_error(error) {
        Some(RepositoryError::OtherFormat { .. }) => return Some(UPDATE),
        Some(RepositoryError::WrongServer { .. }) => {
            return Some(
                "if its administrator confirms that the server was set up anew, ask for an invite \
                 and run `holdall pair --again`; otherwise somebody may be listening in",
            );
        }
        Some(RepositoryError::AlreadyExists { .. }) => {
            return Some("use it as it is, or name another place with -r");
        }
        Some(RepositoryError::NoRoom { .. }) => {
            return Some(MAKE_ROOM);
        }
        _ => {}
    }
    match error.chain().find_map(|cause| cause.downcast_ref()) {
        Some(EngineError::SelfCheck { .. }) => {
            return Some(
                "this computer's memory or processor erred: test it, then back up again; what was \
                 stored before is not affected",
            );
        }
        Some(EngineError::NothingRead) => {
            return Some(
                "check the paths, that what they are on is mounted, and who may read them",
            );
        }
        Some(EngineError::NoPath { .. }) => {
            return Some(
                "`holdall ls` shows what is in a snapshot, `holdall find NAME` which ones have it",
            );
        }
        _ => {}
    }
    if let Some(lack) = system_cause(error).and_then(Lack::of) {
        return Some(of_lack(lack));
    }
    system_cause(error).and_then(of_system).or_else(|| of_crypto_cause(crypto_error(error)?))
}

/// What a server knows this computer and its repository by, as far as that is known here. Another one may have the name
/// that the computer had when it was paired, but none its id, nor what its repository was called.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) machine: Option<String>,
    pub(crate) repository: Option<String>,
}

impl KnownNames {
    /// A hint with these in the place of MACHINE and REPOSITORY, or with NAME.
    fn in_hint(&self, hint: &str) -> String {
        let shown = |name: &Option<String>| match name {
            Some(name) if name.contains(' ') => format!("'{}'", OneLine(name)),
            Some(name) => OneLine(name).to_string(),
            None => "NAME".to_owned(),
        };
        hint.replace("MACHINE", &shown(&self.machine))
            .replace("REPOSITORY", &shown(&self.repository))
    }
}

/// What helps where a server lost a repository, or removed it.
const BEGIN_ANEW: &str = "if its folder is lost there: with an invite of `holdall invite --for MACHINE`, `holdall pair INVITE --default` \
    begins another one";

/// Whether it is a server that has no such repository.
fn is_on_server(error: &anyhow::Error) -> bool {
    matches!(repository_error(error), Some(RepositoryError::NoRepository { place }) if place.starts_with("https://"))
}

/// Whether it is one that was erased.
fn was_erased(error: &anyhow::Error) -> bool {
    matches!(repository_error(error), Some(RepositoryError::NoRepository { place }) if place.contains(WAS_ERASED))
}

/// Why something is not allowed.
fn denial(error: &anyhow::Error) -> Option<Denial> {
    match repository_error(error) {
        Some(RepositoryError::NotAllowed { cause, .. }) => Some(*cause),
        _ => None,
    }
}

/// What helps against a cause for which something is not allowed: one command, and where to type it.
fn of_denial(cause: Denial) -> Option<&'static str> {
    Some(match cause {
        Denial::Quota => {
            "on the server: `holdall admin quota REPOSITORY SIZE` gives the repository more room"
        }
        Denial::ReadOnly => {
            "on the server: `holdall admin rights MACHINE backup` lets this computer back up"
        }
        Denial::RecoveryKit => {
            "to back up, too, pair by an invite: on the server `holdall invite --for MACHINE`, then here \
             `holdall pair - --kit FILE`"
        }
        Denial::RevokedKey => {
            "on the server: `holdall invite --for MACHINE`; with that invite, `holdall pair` lets this \
             computer in again"
        }
        Denial::Invite => "on the server: `holdall invite` prints another one",
        Denial::ShortCode => {
            "on the server: `holdall invite --short` shows another one, and `holdall invite` prints an invite, which \
             needs no such try"
        }
        Denial::UnknownMachine => {
            "if the server was set up anew: `holdall invite` there, then here `holdall pair --again`"
        }
        Denial::Deletion => {
            "on the server: `holdall admin forget REPOSITORY ID`, `holdall admin prune REPOSITORY`; or give the token of \
             `holdall admin token REPOSITORY` here with --admin-token-file"
        }
        Denial::Explained => return None,
        _ => {
            "on the server: `holdall admin machines` and `holdall admin repositories` show what this \
             computer may do"
        }
    })
}

/// What helps where a file of the state folder is damaged, or what was named is no report.
fn of_state(error: &StateError) -> Option<&'static str> {
    let file = match error {
        StateError::Damaged { file, .. } => file,
        StateError::Keyring { .. } => {
            return Some(
                "log in, or unlock the keyring, and try again; if it lost the key, remove that repository's file in the folder \
                 `keys` of the state and give the password, or `holdall pair --kit FILE`",
            );
        }
        StateError::Report { error: ReportError::OtherVersion(_), .. } => {
            return Some("use the holdall that wrote it, or a newer one");
        }
        StateError::Report { .. } => {
            return Some(
                "name a file that `--report FILE.json` wrote, or one of `holdall lab history`",
            );
        }
        _ => return None,
    };
    Some(match file {
        StateFile::Identity => {
            "put back a copy of it; without one, move it away to be a new machine, which a server \
             lets in by `holdall invite --for MACHINE`"
        }
        StateFile::Pairings => "put back a copy of it, or move it away and pair anew",
        StateFile::Key => {
            "put back a copy of it, or move it away and give the password, or `holdall pair \
             --kit FILE`"
        }
        StateFile::Receipt => {
            "put back a copy of it; without it a repository that was rolled back cannot be told: \
             look at `holdall snapshots`, and move it away"
        }
        StateFile::Directory => return None,
    })
}

/// What helps a process that lacks something.
fn of_lack(lack: Lack) -> &'static str {
    match lack {
        Lack::Files => {
            "raise how many files a process may have open (`ulimit -n`, LimitNOFILE of a service)"
        }
        Lack::FilesOfAll => {
            "the whole system has too many files open: end other processes, or raise `fs.file-max`"
        }
        Lack::Memory => {
            "give it more memory (`ulimit -v`, MemoryMax of a service), or end other processes"
        }
    }
}

/// What helps against an answer of the system.
fn of_system(error: &std::io::Error) -> Option<&'static str> {
    let is_forbidden_to_all = error.raw_os_error() == Some(Errno::PERM.raw_os_error());
    match error.kind() {
        ErrorKind::NotFound => Some("is the name right, and is it still there?"),
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            Some("something else is there: name another place")
        }
        ErrorKind::PermissionDenied if is_forbidden_to_all => Some(
            "the system forbids it to this user, or to all: see with `lsattr -d` whether it or its folder is \
             immutable (`i`) or may only grow (`a`); `chattr -i -a` ends that",
        ),
        ErrorKind::PermissionDenied => {
            Some("this user may not do that: see who owns it, or be that user")
        }
        ErrorKind::ReadOnlyFilesystem => {
            Some("what it is on is mounted read-only: mount it for writing, or name another place")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(MAKE_ROOM),
        ErrorKind::FileTooLarge => Some(
            "raise how long files may be (`ulimit -f`, LimitFSIZE of a service), or name a place on a file \
             system that takes longer ones",
        ),
        _ => None,
    }
}

/// What helps against a key that does not fit, or a format that is another.
fn of_crypto_cause(error: &CryptoError) -> Option<&'static str> {
    match error {
        CryptoError::Format(format) if format.is_other_version() => Some(UPDATE),
        CryptoError::OtherRepository => {
            Some("take the kit of that repository, or name the kit's own repository with -r")
        }
        CryptoError::NoWrapping { kind: WrappingKind::Recovery } => Some(
            "its recovery kits were taken away: use a password, or an age or SSH key (--identity)",
        ),
        CryptoError::SetBack => Some(
            "whoever had the keys before could read what is backed up now, so nothing is; ask the \
             administrator to put back the newest file of the repository's folder `wrappings`, or, if \
             that was done on purpose, move what is kept of it away (`keys` or `directories` in this \
             computer's state folder) and give the password",
        ),
        CryptoError::NoWrapping { .. } => Some("use the recovery kit: `holdall pair --kit FILE`"),
        _ => None,
    }
}

/// What helps against a server that does not start.
fn of_server(error: &ServerError) -> Option<&'static str> {
    match error {
        ServerError::DataFolderInUse { .. } => {
            Some("stop the other server, or name another folder with --data")
        }
        ServerError::NoServer { .. } => Some(
            "if a server runs, name its folder with --data; to make a new one, start it: `holdall serve --data DIR`",
        ),
        ServerError::Listen { .. } => Some("name another address with --listen"),
        ServerError::Damaged { .. } => Some("put back a copy of it"),
        _ => match (error.system(), error) {
            (Some(ErrorKind::PermissionDenied), _) => {
                Some("be the user whose folder it is, or name another with --data")
            }
            (Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded), _) => Some(MAKE_ROOM),
            (None, ServerError::Database(_)) => Some(
                "put back a copy of it; without one, move it away and let every machine in again: \
                 `holdall invite --repository NAME` here, and `holdall pair --again` there",
            ),
            _ => None,
        },
    }
}

/// Whether the system does not let this user write there.
pub(crate) fn is_forbidden(error: &anyhow::Error) -> bool {
    use ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(system_error(error), Some(PermissionDenied | ReadOnlyFilesystem))
}

/// What the system refused, if it was the system.
fn system_error(error: &anyhow::Error) -> Option<ErrorKind> {
    system_cause(error).map(std::io::Error::kind)
}

fn system_cause(error: &anyhow::Error) -> Option<&std::io::Error> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

fn state_error(error: &anyhow::Error) -> Option<&StateError> {
    error.chain().find_map(|cause| cause.downcast_ref())
}

/// An error of the engine, its own or one that the state folder met.
fn engine_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a EngineError> {
    match cause.downcast_ref() {
        Some(StateError::Engine(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

fn repository_error(error: &anyhow::Error) -> Option<&RepositoryError> {
    error.chain().find_map(|cause| match engine_error(cause) {
        Some(EngineError::Repository(error)) => Some(error),
        _ => cause.downcast_ref(),
    })
}

fn crypto_error(error: &anyhow::Error) -> Option<&CryptoError> {
    error.chain().find_map(|cause| match engine_error(cause) {
        Some(EngineError::Crypto(error)) => Some(error),
        _ => cause.downcast_ref(),
    })
}

/// Whether whoever reads standard output has had enough, which is no failure to speak of.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_format::FormatError;

    #[test]
    fn an_error_keeps_its_code_however_it_is_wrapped() {
        let bare = || RepositoryError::NoRepository { place: "/x".into() };
        assert_eq!(exit_of(&bare().into()), Exit::NoRepository);
        assert_eq!(exit_of(&EngineError::from(bare()).into()), Exit::NoRepository);
        assert_eq!(exit_of(&anyhow::Error::from(bare()).context("while")), Exit::NoRepository);
        assert_eq!(exit_of(&anyhow::anyhow!("something")), Exit::Failed);
    }

    #[test]
    fn what_does_not_fit_into_an_own_record_is_no_damage() {
        let (declared, limit) = (4097, 4096);
        let over = FormatError::OverLimit { what: "a record", field: "paths", declared, limit };
        let error = EngineError::Record(over.into()).into();
        assert_eq!(
            (exit_of(&error), hint_of(&error, &KnownNames::default())),
            (Exit::Failed, None)
        );
    }

    #[test]
    fn a_refusal_brings_its_own_hint() {
        let refusal = Refusal::new(Exit::Usage, "no").hint("do this");
        let error = anyhow::Error::from(refusal).context("while starting");
        assert_eq!(exit_of(&error), Exit::Usage);
        assert_eq!(hint_of(&error, &KnownNames::default()).as_deref(), Some("do this"));
    }
}
