//! From `-r`, or what this machine was paired with, to an open repository.

use std::net::{IpAddr, Ipv6Addr};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use holdall_crypto::{KeyRing, SigningKey};
use holdall_engine::{EngineError, LockedRepository, UnlockedRepository, make_private};
use holdall_format::{PublicKey, RepositoryId, Spare, WrappingSet};
use holdall_protocol::{
    ClientOptions, HttpRepository, MachineIdentity, RateLimit, RepositoryError, ServerAddress,
};
use holdall_repository::EmbeddedRepository;
use holdall_state::{Directories, KeptKeys, KeptParts, Known, Pairing, Pairings, directory_name};
use holdall_sys::SystemClock;

use crate::app::App;
use crate::exit::{Exit, Refusal, is_unknown_machine, is_wrong_server};
use crate::opening::keeper::Keeper;
use crate::opening::known;
use crate::opening::unlock::key_ring;
use crate::terminal::output::duration;

/// The port of a server that is named without one.
pub(crate) const DEFAULT_PORT: u16 = 7443;
/// How long a server that this machine does not know is tried.
const UNKNOWN_SERVER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long, and over which connections, a server is asked.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    /// How long a server that was lost is asked again.
    pub(crate) retry_for: Duration,
    /// How long a server that cannot be reached at the start is tried again.
    pub(crate) reach_for: Duration,
    /// Connections at the same time.
    pub(crate) streams: usize,
    /// Addresses of this computer to connect from, in turn; none is any.
    pub(crate) bind: Vec<IpAddr>,
    /// How fast is sent.
    pub(crate) upload: Option<RateLimit>,
    /// Most bytes received in a second.
    pub(crate) download_bytes_per_second: Option<u64>,
    /// Whether what is sent may wait for what others send.
    pub(crate) may_wait: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            retry_for: Duration::from_secs(300),
            reach_for: Duration::ZERO,
            streams: 4,
            bind: Vec::new(),
            upload: None,
            download_bytes_per_second: None,
            may_wait: false,
        }
    }
}

impl Patience {
    /// The same for the client.
    pub(crate) fn options(self, app: &App) -> ClientOptions {
        ClientOptions {
            retry_for: self.retry_for,
            streams: self.streams,
            interrupt: app.interrupt.flag(),
            bind: self.bind,
            upload: self.upload,
            download_bytes_per_second: self.download_bytes_per_second,
            may_wait: self.may_wait,
            meter: app.wire.clone(),
            ..ClientOptions::default()
        }
    }
}

/// What restic, kopia and rclone call places that are neither directories nor servers of holdall.
const OTHER_SCHEMES: [&str; 10] =
    ["sftp", "rclone", "rest", "b2", "s3", "gs", "azure", "swift", "ssh", "file"];

/// Where a repository is, as typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// In a directory.
    Directory(PathBuf),
    /// On a server, `HOST:PORT`; the name may be empty.
    Server { host: String, name: String },
}

impl Where {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Refusal`] for what names nothing that holdall knows.
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        if let Some(rest) = text.strip_prefix("https://") {
            let (host, name) = rest.split_once('/').unwrap_or((rest, ""));
            let name = name.trim_end_matches('/').to_owned();
            return Ok(Self::Server { host: with_port(host, text)?, name });
        }
        if text.starts_with("http://") {
            return Err(Refusal::new(
                Exit::Usage,
                format!("{text}: a holdall server speaks https only"),
            )
            .hint("begin it with https://"));
        }
        if text.starts_with("s3://") {
            return Err(Refusal::new(
                Exit::Usage,
                format!("{text}: object stores are not supported yet"),
            )
            .hint("name a directory or a holdall server"));
        }
        match scheme_of(text) {
            Some(scheme) => Err(Refusal::new(
                Exit::Usage,
                format!("{text}: places that begin with {scheme} are not supported"),
            )
            .hint(format!(
                "name a directory (./{text} if that is its name) or https://HOST:PORT/NAME"
            ))),
            None => Ok(Self::Directory(PathBuf::from(text))),
        }
    }
}

/// What a place begins with that other programs know and holdall does not: any scheme of an address, or
/// one of those that are written without slashes.
fn scheme_of(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let is_known = OTHER_SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    (is_scheme && (rest.starts_with("//") || is_known)).then_some(&text[..=scheme.len()])
}

/// An IPv6 address that stands alone, in brackets; with the port behind it if the last number may be one.
pub(crate) fn in_brackets(host: &str) -> Option<String> {
    let is_address = |text: &str| {
        text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
    };
    match host.rsplit_once(':') {
        Some((address, port)) if is_address(address) && port.parse::<u16>().is_ok() => {
            Some(format!("[{address}]:{port}"))
        }
        _ => is_address(host).then(|| format!("[{host}]")),
    }
}

fn with_port(host: &str, text: &str) -> Result<String, Refusal> {
    let after_brackets = host.rsplit_once(']').map_or(host, |(_, after)| after);
    let wrong = || {
        let hint = match in_brackets(host) {
            Some(host) => format!("put an IPv6 address in brackets: https://{host}"),
            None => "PORT and NAME may be left out: https://nas".to_owned(),
        };
        Refusal::new(Exit::Usage, format!("{text}: not https://HOST:PORT/NAME")).hint(hint)
    };
    match after_brackets.split_once(':') {
        _ if host.is_empty() => Err(wrong()),
        None => Ok(format!("{host}:{DEFAULT_PORT}")),
        Some((_, port)) => port.parse::<u16>().map(|_| host.to_owned()).map_err(|_| wrong()),
    }
}

/// A repository that was found, before any key.
pub(crate) struct Opened {
    /// Where it is.
    pub(crate) place: LockedRepository,
    /// Who keeps it.
    pub(crate) keeper: Keeper,
    /// As people write it.
    pub(crate) name: String,
    /// What its server calls it, or where its directory is.
    pub(crate) repository_name: String,
    /// The server's addresses and identity, if it is on one.
    pub(crate) server: Option<(Vec<String>, PublicKey)>,
    /// The repository that is known to be there: the paired one, or the last that was opened.
    known: Option<Known>,
    /// What the state calls its directory, if it is in one.
    directory: Option<String>,
}

impl Opened {
    /// The wrappings that are there.
    ///
    /// # Errors
    /// Damage if a server shows another repository than the paired one, or if the keys were set back; if
    /// they cannot be read.
    pub(crate) fn wrappings(&self) -> Result<WrappingSet> {
        let set = self.place.wrappings();
        let set = set.map_err(|error| hint_at_copies(error, self.directory.is_some()))?;
        if let Some(known) = self.known {
            if self.directory.is_none() {
                known::check_paired(&set, known.repository, &self.name)?;
            }
            known.check_epoch(&set).with_context(|| self.name.clone())?;
        }
        Ok(set)
    }

    /// The wrappings that are there, and the key ring that is wrapped in them.
    ///
    /// # Errors
    /// As for [`Self::wrappings`] and [`key_ring`].
    pub(crate) fn unlock(&self, app: &App) -> Result<(WrappingSet, KeyRing)> {
        let set = self.wrappings()?;
        let known = self.known.map(|known| known.repository);
        if self.place.was_put_back() {
            app.output.note(format_args!(
                "{} had lost its configuration or its keys; it was given back what this computer kept of them",
                self.name
            ));
        }
        let ring = key_ring(app, &set, &self.name, known)?;
        self.remember(app, Known::of(&set));
        // Should it not be kept, the repository has two copies of its own.
        if let Ok(spare) = self.place.spare() {
            let _ = KeptParts::in_state(&app.folders.state).keep(&spare);
        }
        Ok((set, ring))
    }

    /// Opens it with the kept key, the key that was named, or the password.
    ///
    /// # Errors
    /// As for [`Self::unlock`].
    fn open(self, app: &App) -> Result<(UnlockedRepository, Keeper)> {
        let (_, ring) = self.unlock(app)?;
        Ok((self.place.open(&ring)?, self.keeper))
    }

    /// Remembers which repository lies in a directory. Should it not be kept, a key of somebody's own
    /// asks for the fingerprint once more.
    pub(crate) fn remember(&self, app: &App, known: Known) {
        if let Some(directory) = self.directory.as_ref().filter(|_| self.known != Some(known)) {
            let _ = Directories::in_state(&app.folders.state).keep(directory, &known);
        }
    }
}

/// Says who can give a repository back what it has lost of what it says of itself.
pub(crate) fn hint_at_copies(error: EngineError, is_in_directory: bool) -> anyhow::Error {
    if !matches!(error, EngineError::Repository(RepositoryError::Damaged { .. })) {
        return error.into();
    }
    let hint = match is_in_directory {
        true => {
            "a computer that used it before gives it back when it uses it again; so do `holdall pair --kit \
             FILE`, and `holdall check --repair --from COPY` with a copy of the directory: a repository that \
             `holdall copy` made has keys of its own"
        }
        false => {
            "a computer that used it before gives it back when it uses it again, with `holdall snapshots`; or its \
             administrator puts back a copy of the repository's `config` and `wrappings`"
        }
    };
    Refusal::new(Exit::Damage, error.to_string()).hint(hint).into()
}

/// Finds the repository that was named, or else the paired one.
///
/// # Errors
/// [`Refusal`] if there is neither, or the name makes no sense; [`RepositoryError::Unreachable`].
pub(crate) fn place(app: &App, patience: Patience) -> Result<Opened> {
    let pairings = app.pairings()?;
    let Some(named) = app.named_repository() else {
        let pairing = pairings.default().ok_or_else(no_default)?;
        return paired(app, pairing, None, patience);
    };
    match Where::parse(named)? {
        Where::Directory(folder) => embedded(app, &folder),
        Where::Server { host, name } => match pairings.find(&host, &name) {
            Some(pairing) => paired(app, pairing, Some(host), patience),
            None => Err(not_paired(&pairings, &host, &name)),
        },
    }
}

fn no_default() -> Refusal {
    Refusal::new(Exit::Usage, "no repository was named, and this machine is not paired")
        .hint("name one with -r, or pair this machine with a server: `holdall pair`")
}

/// Why this machine may not use what was named on a server.
fn not_paired(pairings: &Pairings, host: &str, name: &str) -> anyhow::Error {
    let own = pairings.names_at(host);
    let Some(first) = own.first() else { return unknown_server(host) };
    let message = format!(
        "on {host} this machine may use {}, and no other repository, such as {name}",
        own.join(", ")
    );
    let hint =
        format!("name https://{host}/{first}; a repository of another name is another machine's");
    Refusal::new(Exit::NotAllowed, message).hint(hint).into()
}

/// Tells a server that is not there from one that this machine may not use.
fn unknown_server(host: &str) -> anyhow::Error {
    let reach = || {
        let mut last = std::io::Error::other("the name has no address");
        let addresses: Vec<_> = host.to_socket_addrs()?.collect();
        let share =
            UNKNOWN_SERVER_TIMEOUT / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        for address in addresses {
            match TcpStream::connect_timeout(&address, share) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    };
    match reach() {
        Ok(()) => Refusal::new(Exit::NotAllowed, format!("this machine is not paired with {host}"))
            .hint("ask its administrator for an invite, then `holdall pair`")
            .into(),
        Err(error) => {
            RepositoryError::Unreachable { address: host.to_owned(), reason: error.to_string() }
                .into()
        }
    }
}

/// A repository in a directory, used without any server: this machine signs the receipts itself.
fn embedded(app: &App, folder: &Path) -> Result<Opened> {
    let absolute = crate::arguments::sources::absolute(folder)?;
    let folder = PathBuf::from(std::ffi::OsString::from_vec(absolute));
    let identity = app.identity()?;
    let (machine, key) = (identity.machine, identity.signing.public());
    let signer = Arc::clone(&identity.signing);
    // The cache is one for each directory; which repository is in it shows only later. It is called as
    // nothing in the state is, for both folders may be one.
    let directory = directory_name(&folder);
    let caches = app.folders.cache.join("embedded");
    let cache = caches.join(&directory);
    let known = known::in_directory(app, &directory)?;
    let clock = Arc::new(SystemClock);
    app.folders.prepare_cache();
    // Who needs it meets what keeps it from being made.
    let _ = make_private(&caches);
    let repository = EmbeddedRepository::at(&folder, &cache, machine, key, signer, clock)
        .stopped_by(app.interrupt.flag());
    let kept = known.and_then(|known| kept_parts(app, known.repository));
    let keeper = Keeper::Directory(Arc::new(repository));
    let place =
        LockedRepository::new(keeper.repository(), identity.signing, app.folders.cache.clone());
    let place = place.keeping(kept);
    let name = folder.display().to_string();
    let (repository_name, directory) = (name.clone(), Some(directory));
    Ok(Opened { place, keeper, repository_name, name, server: None, known, directory })
}

/// What that repository said of itself when this machine opened it last.
fn kept_parts(app: &App, repository: RepositoryId) -> Option<Spare> {
    KeptParts::in_state(&app.folders.state).get(repository)
}

/// What the place of the repository that was named cannot do, and what follows from it; nothing
/// for one on a server.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn lacking(app: &App) -> Result<Vec<String>> {
    match app.named_repository().map(Where::parse).transpose()? {
        Some(Where::Directory(folder)) => Ok(holdall_repository::lacking(&folder)?),
        _ => Ok(Vec::new()),
    }
}

/// The id of the repository that was opened last in the directory of that absolute path, if one was.
pub(crate) fn last_opened(app: &App, folder: &Path) -> Option<String> {
    let known = Directories::in_state(&app.folders.state).get(&directory_name(folder)).ok()??;
    Some(known.repository.to_string())
}

fn paired(
    app: &App,
    pairing: &Pairing,
    host: Option<String>,
    patience: Patience,
) -> Result<Opened> {
    let signing = signing_key(app, pairing)?;
    let hosts = pairing.hosts(host.as_deref());
    let server = pairing.identity()?;
    let known = pairing.repository.parse().context("the paired repository's id is damaged")?;
    let known = Known { repository: known, epoch: None };
    let repository = Some(pairing.name.clone());
    let address = ServerAddress { hosts, identity: server, repository };
    let name = address.to_string();
    let repository = connect(app, address, &signing, patience)
        .map_err(|error| hint_at_other(error, pairing, host.as_deref()))?;
    if host.as_ref().is_some_and(|host| host == repository.host_reached()) {
        // Should it not be kept, it can be named again.
        let _ = app.pairings()?.learn(&pairing.repository, repository.host_reached());
    }
    let keeper = Keeper::Server(Arc::new(repository));
    let place = place_of(app, &keeper, signing).keeping(kept_parts(app, known.repository));
    let repository_name = pairing.name.clone();
    // Wherever it was reached, it is the same server.
    let (server, known) = (Some((pairing.addresses_from(host.as_deref()), server)), Some(known));
    Ok(Opened { place, keeper, name, repository_name, server, known, directory: None })
}

/// Says what can be done about a server of another identity, which may be another one that was `named`.
fn hint_at_other(error: anyhow::Error, pairing: &Pairing, named: Option<&str>) -> anyhow::Error {
    if pairing.reads_only {
        return hint_at_kit(error, false);
    }
    if !is_wrong_server(&error) || named.is_none_or(|host| pairing.is_at(host)) {
        return error;
    }
    let hint = format!(
        "the paired one was at {}; to use this one, ask its administrator for an invite, then run \
         `holdall pair`, with --again if it is the paired one set up anew",
        pairing.addresses.join(", ")
    );
    Refusal::new(Exit::NotAllowed, format!("{error:#}")).hint(hint).into()
}

/// Says what the owner of a recovery kit can do about a server of another identity, or one that does not know the kit.
pub(crate) fn hint_at_kit(error: anyhow::Error, again: bool) -> anyhow::Error {
    if is_unknown_machine(&error) {
        return Refusal::new(Exit::NotAllowed, "the server does not know this kit")
            .hint(
                "its repository was removed there, or the kit was taken away with `holdall key remove`. A copy of the \
                 repository that still has the kit is opened where it lies: `holdall pair --kit FILE -r DIRECTORY`",
            )
            .into();
    }
    if again || !is_wrong_server(&error) {
        return error;
    }
    let hint = "if its administrator confirms that the server was set up anew, run `holdall pair \
                --kit FILE --again` and compare fingerprints; otherwise somebody may be \
                listening in";
    Refusal::new(Exit::NotAllowed, format!("{error:#}")).hint(hint).into()
}

/// The key with which this machine signs in there.
fn signing_key(app: &App, pairing: &Pairing) -> Result<Arc<SigningKey>> {
    if !pairing.reads_only {
        return Ok(app.identity()?.signing);
    }
    let kept = KeptKeys::in_state(&app.folders.state).reader(&pairing.repository)?;
    Ok(Arc::new(kept.context("the recovery kit's key is gone; pair with the kit again")?))
}

/// A repository on a server, for whoever has `signing`.
///
/// # Errors
/// As for [`HttpRepository::connect`].
pub(crate) fn place_at(
    app: &App,
    address: ServerAddress,
    signing: Arc<SigningKey>,
    patience: Patience,
) -> Result<LockedRepository> {
    let repository = connect(app, address, &signing, patience)?;
    Ok(place_of(app, &Keeper::Server(Arc::new(repository)), signing))
}

/// The server that was named, `https://HOST:PORT`, or else the paired one, and the key with which
/// this machine signs in there.
///
/// # Errors
/// [`Refusal`] if this machine is paired with none.
pub(crate) fn paired_server(
    app: &App,
    named: Option<&str>,
) -> Result<(ServerAddress, Arc<SigningKey>)> {
    let pairings = app.pairings()?;
    let (pairing, host) = match named.map(Where::parse).transpose()? {
        None => (
            pairings.default().ok_or_else(|| {
                Refusal::new(Exit::Usage, "which server? This machine is paired with none")
                    .hint("run `holdall lab listen` there, and name it with its --token")
            })?,
            None,
        ),
        Some(Where::Server { host, name }) => {
            let found = pairings.find(&host, &name);
            (found.ok_or_else(|| not_paired(&pairings, &host, &name))?, Some(host))
        }
        Some(Where::Directory(folder)) => {
            let what = format!("{} is no server", folder.display());
            return Err(Refusal::new(Exit::Usage, what).into());
        }
    };
    let (hosts, identity) = (pairing.hosts(host.as_deref()), pairing.identity()?);
    let address = ServerAddress { hosts, identity, repository: None };
    Ok((address, signing_key(app, pairing)?))
}

fn connect(
    app: &App,
    address: ServerAddress,
    signing: &SigningKey,
    patience: Patience,
) -> Result<HttpRepository> {
    let machine = MachineIdentity::from_seed(signing.seed())?;
    let (reach_for, options) = (patience.reach_for, patience.options(app));
    match HttpRepository::connect(address.clone(), &machine, options.clone()) {
        Err(error @ RepositoryError::Unreachable { .. }) if !reach_for.is_zero() => {
            let patience = duration(reach_for.as_secs_f64());
            app.output.note(format_args!("note: {error}; trying again for {patience}"));
            Ok(HttpRepository::connect(address, &machine, ClientOptions { reach_for, ..options })?)
        }
        connected => Ok(connected?),
    }
}

fn place_of(app: &App, keeper: &Keeper, signing: Arc<SigningKey>) -> LockedRepository {
    app.folders.prepare_cache();
    LockedRepository::new(keeper.repository(), signing, app.folders.cache.clone())
}

/// Opens the repository with the kept key, the key that was named, or the password.
///
/// # Errors
/// What keeps it from being opened.
pub(crate) fn access(app: &App) -> Result<UnlockedRepository> {
    access_with(app, Patience::default())
}

/// The same, and what people call the repository: its directory, or its address.
///
/// # Errors
/// As for [`access`].
pub(crate) fn access_and_name(app: &App) -> Result<(UnlockedRepository, String)> {
    let opened = place(app, Patience::default())?;
    let name = opened.name.clone();
    Ok((opened.open(app)?.0, name))
}

/// The same, and who keeps the repository.
///
/// # Errors
/// As for [`access`].
pub(crate) fn access_and_keeper(
    app: &App,
    patience: Patience,
) -> Result<(UnlockedRepository, Keeper)> {
    place(app, patience)?.open(app)
}

/// The same where another repository is open, which may be a copy of that one and have what it lost of what it
/// says of itself.
///
/// # Errors
/// As for [`access`].
pub(crate) fn access_beside(
    app: &App,
    other: Option<RepositoryId>,
) -> Result<(UnlockedRepository, Keeper)> {
    let mut opened = place(app, Patience::default())?;
    if let Some(other) = other {
        opened.place = opened.place.keeping(kept_parts(app, other));
    }
    opened.open(app)
}

/// The same with other patience.
///
/// # Errors
/// As for [`access`].
pub(crate) fn access_with(app: &App, patience: Patience) -> Result<UnlockedRepository> {
    Ok(access_and_keeper(app, patience)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, name: &str) -> Where {
        Where::Server { host: host.into(), name: name.into() }
    }

    #[test]
    fn a_place_is_a_directory_or_a_server_with_an_optional_port_and_name() {
        let parse = |text| Where::parse(text).unwrap();
        assert_eq!(parse("/mnt/x"), Where::Directory("/mnt/x".into()));
        assert_eq!(parse("https://nas"), server("nas:7443", ""));
        assert_eq!(parse("https://nas:1/laptop/"), server("nas:1", "laptop"));
        assert_eq!(parse("https://[2001:db8::1]/a"), server("[2001:db8::1]:7443", "a"));
        assert_eq!(parse("https://[::1]:9/a"), server("[::1]:9", "a"));
        for wrong in ["https://", "https://nas:x/a", "http://nas", "s3://bucket/x"] {
            assert_eq!(Where::parse(wrong).unwrap_err().exit, Exit::Usage, "{wrong}");
        }
        for (bare, meant) in [
            ("::1", "[::1]"),
            ("::1:7443", "[::1]:7443"),
            ("2001:db8::1:2:3", "[2001:db8::1:2]:3"),
            ("2001:db8:0:0:0:0:0:5", "[2001:db8:0:0:0:0:0:5]"),
            ("fe80::1%eth0:7", "[fe80::1%eth0]:7"),
        ] {
            let hint = Where::parse(&format!("https://{bare}/a")).unwrap_err().hint.unwrap();
            assert!(hint.ends_with(&format!("https://{meant}")), "{bare}: {hint}");
        }
    }

    #[test]
    fn a_place_of_another_kind_is_no_directory_unless_it_is_written_as_one() {
        let sftp = Where::parse("sftp:ada@nas:/srv").unwrap_err();
        assert_eq!(sftp.exit, Exit::Usage);
        assert!(sftp.hint.unwrap().contains("./sftp:ada@nas:/srv"));
        for other in
            ["ssh://nas/x", "HTTPS://nas", "rclone:b:x", "B2:x:y", "rest:https://x", "x+y://"]
        {
            assert_eq!(Where::parse(other).unwrap_err().exit, Exit::Usage, "{other}");
        }
        for folder in
            ["./sftp:x", "/mnt/ssh://x", "a:b", "12:00", "sftp", "nas/b2:x", ":", "1a://x"]
        {
            assert_eq!(Where::parse(folder).unwrap(), Where::Directory(folder.into()), "{folder}");
        }
    }
}
