//! `try`: everything once, for real, in a place that is gone afterwards.
//!
//! A server process, TLS, pairing, two backups, a restore and a comparison with the source: nothing
//! is simulated, so what it says of speed and fidelity holds for this tree on this computer. It
//! says too what it does not show: there is no real network in between, and one disk does all.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use holdall_diagnosis::Forecast;
use holdall_engine::{
    BackupOptions, CompareOptions, CompareReport, ExcludeRules, Patterns, RestoreOptions, Source,
    Survey, UnlockedRepository, find_snapshot,
};
use holdall_server::InviteRequest;
use holdall_sys::Timestamp;

use super::memory::Memory;
use super::report::{Conditions, Report};
use super::server::Server;
use crate::app::App;
use crate::commands::pair::ByInvite;
use crate::commands::work_folder::WorkFolder;
use crate::commands::{backup, browse, invite, pair, restore};
use crate::exit::{Exit, Refusal};
use crate::opening::open;
use crate::terminal::progress::watched;

/// Does everything once with `dir`.
///
/// # Errors
/// If a step fails; what was made is gone all the same.
pub(crate) fn run(app: &App, dir: &Path, opens: bool) -> Result<Exit> {
    let dir = dir.canonicalize().with_context(|| format!("{}", dir.display()))?;
    if !dir.is_dir() {
        return Err(Refusal::new(Exit::Failed, format!("{} is not a folder", dir.display()))
            .hint("name a folder: `holdall try DIR`")
            .into());
    }
    app.output.detail(format_args!("looking at {}", dir.display()));
    let survey = Survey::take(&dir, &app.run())?;
    let hint = "name a folder on a disk with enough room in TMPDIR, or try a smaller folder";
    let work = WorkFolder::make(&candidates(app, &dir), survey.room_bytes(), hint)?;
    let ended = attempt(app, &dir, &survey, work.path(), opens);
    let removed = work.remove();
    let exit = ended?;
    removed?;
    Ok(exit)
}

/// Where the work folder may lie, the likeliest to be a disk outside of `dir` first.
fn candidates(app: &App, dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![std::env::temp_dir(), PathBuf::from("/var/tmp")];
    all.extend(app.folders.cache_to_work_in());
    all.extend(dir.parent().map(Path::to_owned));
    all
}

fn attempt(app: &App, dir: &Path, survey: &Survey, work: &Path, opens: bool) -> Result<Exit> {
    let report = Report::begin(&app.output, dir, survey, work)?;
    let server = Server::start(&work.join("server"))?;
    let client = app.within(&work.join("client"));
    let access = pair_with(&client, &server, work)?;
    // What is told from here on is for the user, and what is kept for nobody.
    let client = client.telling_as(app);
    let options = options(app, dir, work)?;

    let read_before = Conditions::bytes_read_from_disk();
    let (first, memory) =
        watching(&server, || backup::measured(&client, &access, None, &options, None))?;
    let read_from_disk = Conditions::bytes_read_since(read_before);
    report.backup("first backup", &first, &memory)?;
    let mut most = memory;

    let since = holdall_sys::host::now();
    let options = backup::with_environment(options);
    let (again, memory) =
        watching(&server, || backup::measured(&client, &access, None, &options, None))?;
    report.backup("unchanged backup", &again, &memory)?;
    most = most.max(memory);

    let target = work.join("restore");
    let (restored, memory) = watching(&server, || restore_all(&client, &access, dir, &target))?;
    report.restore(&restored, &memory)?;
    most = most.max(memory);
    let compared = compare(app, dir, &target, work, since, survey)?;
    let same_disk = on_one_disk(dir, work);
    let conditions = Conditions { read_from_disk, same_disk, memory: most };
    report.end(&first, &again, &restored, &compared, &conditions)?;
    if opens {
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        browse::show(app, access, "what was tried".to_owned(), listen, true)?;
    }
    Ok(if !compared.identical {
        Exit::Damage
    } else if first.summary.problems + again.summary.problems + restored.summary.problems > 0 {
        Exit::Incomplete
    } else {
        Exit::Done
    })
}

/// Does something and says how much memory it took.
fn watching<T>(server: &Server, work: impl FnOnce() -> Result<T>) -> Result<(T, Memory)> {
    Memory::begin(server);
    let done = work()?;
    Ok((done, Memory::since_begin(server)))
}

/// Pairs a new machine with the server, through an invite as an administrator makes it.
fn pair_with(client: &App, server: &Server, work: &Path) -> Result<UnlockedRepository> {
    let invite = invite::make(server.data(), &InviteRequest::default())?.invite.to_text();
    let kit_file = work.join("recovery-kit.txt");
    let kit_file = pair::NamedKit::Write(&kit_file);
    pair::pair(
        client,
        &ByInvite {
            invite: &invite,
            name: "",
            kit_file,
            again: false,
            new: true,
            default: true,
            cipher: None,
        },
    )?;
    open::access(client)
}

fn options(app: &App, dir: &Path, work: &Path) -> Result<BackupOptions> {
    let path = crate::arguments::sources::absolute(dir)?;
    let source = Source { path: path.clone(), read_at: path };
    let mut options = BackupOptions::new(vec![source], holdall_sys::host::host_name());
    options.user = backup::user_name();
    options.one_file_system = true;
    if work.starts_with(dir) {
        app.output.detail(format_args!("{} is left out", work.display()));
        let pattern = Patterns::literal(&work.to_string_lossy());
        let mut patterns = Patterns::below(b"/");
        patterns.add(pattern.as_bytes(), false)?;
        options.exclude_patterns = vec![pattern];
        options.exclude = ExcludeRules { patterns, ..ExcludeRules::default() };
    }
    Ok(backup::with_environment(options))
}

fn restore_all(
    app: &App,
    access: &UnlockedRepository,
    dir: &Path,
    target: &Path,
) -> Result<restore::Done> {
    let path = crate::arguments::sources::absolute(dir)?;
    let listed = holdall_engine::snapshots(access)?.snapshots;
    let snapshot = find_snapshot(&listed, access.machine(), "latest", Some(&path))?;
    restore::measured(app, access, snapshot, Some(&path), target, &RestoreOptions::default())
}

fn compare(
    app: &App,
    dir: &Path,
    target: &Path,
    work: &Path,
    since: Timestamp,
    survey: &Survey,
) -> Result<CompareReport> {
    use std::os::unix::ffi::OsStrExt;
    let work = work.as_os_str().as_bytes();
    let left_out = |path: &[u8]| path == work || survey.leaves_out(path);
    let options = CompareOptions { since, left_out: &left_out };
    let run = app.run();
    let compare = || holdall_engine::compare(dir, target, &options, &run);
    Ok(watched(&app.output, &run, Forecast::typical, compare)?)
}

fn on_one_disk(dir: &Path, work: &Path) -> bool {
    let device = |path| holdall_sys::disk::device_of(path).ok();
    device(dir).is_some() && device(dir) == device(work)
}
