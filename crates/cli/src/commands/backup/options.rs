//! From what was typed to what the engine is asked for.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use holdall_engine::{
    BackupOptions, Changes, ExcludeRules, FsSnapshot, PatternError, Patterns, Source,
};
use holdall_sys::{Clock, SystemClock, guarded};

use super::Args;
use super::command_source::{self, CommandSource};
use crate::app::App;
use crate::arguments::selection::{PATTERN_HINT, check_added, check_idle};
use crate::arguments::{recordable, sources};
use crate::commands::tag;
use crate::exit::{Exit, Refusal};
use crate::terminal::interrupt::Interrupt;

/// Longer than any list of what changed: the agent names some thousand folders at most.
const CHANGES_MAX_BYTES: u64 = 64 << 20;
const EXCLUDE: &str = "--exclude";
const IEXCLUDE: &str = "--iexclude";

impl Args {
    /// The same, with a file that says what may have changed.
    pub(crate) fn with_changes(self, changes: Option<PathBuf>) -> Self {
        Self { changes, ..self }
    }

    /// What is backed up, as it was named: paths, or the file that a command's output becomes.
    pub(crate) fn named(&self) -> Vec<PathBuf> {
        match &self.stdin_from_command {
            Some(name) => vec![name.into()],
            None => self.paths.iter().cloned().chain(self.last.iter().map(PathBuf::from)).collect(),
        }
    }

    /// Has a snapshot of the file system read instead, if that is wanted, as long as what this gives lives.
    ///
    /// # Errors
    /// [`Refusal`] if there is none to be had.
    pub(super) fn fs_snapshot(
        &self,
        app: &App,
        options: &mut BackupOptions,
    ) -> Result<Option<FsSnapshot>, Refusal> {
        if !self.use_fs_snapshot || options.dry_run {
            return Ok(None);
        }
        if holdall_sys::users::effective_uid() != 0 {
            return Err(Refusal::new(Exit::Failed, "only root may take snapshots of file systems")
                .hint("leave --use-fs-snapshot out, or run it as root"));
        }
        let folder = app.folders.state.join("fs-snapshot");
        let taken = holdall_engine::take_fs_snapshot(&options.sources, &folder);
        let taken = taken.map_err(|error| {
            Refusal::new(Exit::Failed, error.to_string()).hint(
                "nothing was backed up; without --use-fs-snapshot, files are read as they are",
            )
        })?;
        for note in &taken.notes {
            app.output.note(format_args!("note: {note}"));
        }
        options.sources.clone_from(&taken.sources);
        // They are about what is there now.
        options.changes = None;
        Ok(Some(taken))
    }

    /// Whether the patterns of its options can be understood.
    ///
    /// # Errors
    /// What is wrong with one, and the option that gave it.
    pub(crate) fn check_patterns(&self) -> Result<(), (&'static str, anyhow::Error)> {
        for (option, texts) in [(EXCLUDE, &self.exclude), (IEXCLUDE, &self.iexclude)] {
            let mut patterns = Patterns::below(b"/");
            for text in texts {
                add_typed(&mut patterns, text, option).map_err(|error| (option, error))?;
            }
        }
        Ok(())
    }

    /// The command whose output is backed up, if one is.
    pub(super) fn command(&self, app: &App) -> Result<Option<(Source, CommandSource)>, Refusal> {
        let Some(name) = &self.stdin_from_command else { return Ok(None) };
        let command = CommandSource::new(&self.last, &app.interrupt)?;
        Ok(Some((command_source::source(name)?, command)))
    }
}

/// What is to be done for the output of a command.
pub(super) fn of_command(
    args: &Args,
    source: &Source,
    command: &CommandSource,
) -> Result<BackupOptions> {
    let mut options = with_general(args, BackupOptions::new(vec![source.clone()], host(args)))?;
    options.producers = vec![(source.path.clone(), Arc::new(command.clone()))];
    recordable::check(&options)?;
    Ok(options)
}

/// What is to be done, once the sources were looked at; whether some of them are not there.
pub(super) fn looked_at(args: &Args, app: &App) -> Result<(BackupOptions, bool)> {
    let mut options = options(args, &app.interrupt)?;
    // What a list names may be anything, as the content of a folder may.
    let typed = options.sources.get(..args.named().len()).unwrap_or_default();
    options.pipes = sources::open_pipes(typed, options.sources.len())?;
    if args.files_from.is_empty() {
        sources::check_whole(app, &options)?;
    }
    recordable::check(&options)?;
    let some_missing = sources::check_there(&options.sources)?;
    Ok((options, some_missing))
}

fn options(args: &Args, interrupt: &Interrupt) -> Result<BackupOptions> {
    let mut paths = args.named();
    for list in &args.files_from {
        paths.extend(interrupt.while_waiting(|| sources::read_list(list))?);
    }
    if paths.is_empty() {
        return Err(Refusal::new(Exit::Usage, "nothing to back up: the list is empty")
            .hint("what follows --files-from names a path in each line")
            .into());
    }
    let mut options = BackupOptions::new(sources::resolve(&paths, &args.read_as)?, host(args));
    let (patterns, texts) = patterns(args)?;
    options.exclude_patterns = texts;
    sources::check_reached(&options.sources, &patterns)?;
    let if_present = args.exclude_if_present.iter().map(|name| name.as_bytes().to_vec()).collect();
    options.exclude = ExcludeRules {
        patterns,
        caches: args.exclude_caches,
        if_present,
        larger_than_bytes: args.exclude_larger_than,
    };
    options.accept_empty = sources::among(&options.sources, &args.accept_empty)?;
    options.one_file_system = args.one_file_system;
    with_general(args, options)
}

/// What may have changed, as a file says it. Where that is empty or cannot be read, everything is looked at.
pub(super) fn changes(file: &Path, app: &App) -> Option<Changes> {
    let read = || {
        let mut bytes = Vec::new();
        guarded::open_regular(file)?.take(CHANGES_MAX_BYTES).read_to_end(&mut bytes)?;
        anyhow::Ok((!bytes.is_empty()).then(|| Changes::from_bytes(&bytes)).transpose()?)
    };
    let tell = |error: &anyhow::Error| {
        app.output
            .note(format_args!("cannot use {}: {error}; everything is looked at", file.display()));
    };
    read().inspect_err(tell).ok().flatten()
}

/// The name of the host to record.
fn host(args: &Args) -> String {
    args.host.clone().unwrap_or_else(holdall_sys::host::host_name)
}

/// With what is not about paths.
fn with_general(args: &Args, mut options: BackupOptions) -> Result<BackupOptions> {
    options.user = user_name();
    tag::check_new(&args.tags)?;
    options.tags = args.tags.clone();
    options.read_all = args.read_all;
    options.self_check = !args.no_self_check;
    options.dry_run = args.dry_run;
    options.streams = args.connection.streams();
    Ok(with_environment(options))
}

/// What is left out, in the order in which the last one counts, and the same as it was given.
fn patterns(args: &Args) -> Result<(Patterns, Vec<String>)> {
    let mut patterns = Patterns::below(b"/");
    let mut texts = Vec::new();
    for text in &args.exclude {
        add_typed(&mut patterns, text, EXCLUDE)?;
        texts.push(text.clone());
    }
    for file in &args.exclude_file {
        let name = file.display();
        let text = sources::read_rules("--exclude-file", file)?;
        if let Some((line, error)) = patterns.add_file(&text, false).into_iter().next() {
            return Err(refused(&format!("{name}, line {line}"), error).into());
        }
        let text = String::from_utf8_lossy(&text);
        let lines = text.trim_start_matches('\u{feff}').lines();
        let is_pattern = |line: &&str| !line.starts_with('#') && !line.trim_end().is_empty();
        texts.extend(lines.filter(is_pattern).map(str::to_owned));
    }
    for text in &args.iexclude {
        add_typed(&mut patterns, text, IEXCLUDE)?;
        texts.push(text.clone());
    }
    check_idle(&patterns)?;
    Ok((patterns, texts))
}

/// Adds a pattern that an option gave.
fn add_typed(patterns: &mut Patterns, text: &str, option: &str) -> Result<()> {
    let before = patterns.len();
    let ignores_case = option == IEXCLUDE;
    patterns.add(text.as_bytes(), ignores_case).map_err(|error| refused(option, error))?;
    check_added(patterns, before, option)?;
    Ok(())
}

/// The refusal of a pattern.
fn refused(what: &str, error: PatternError) -> Refusal {
    Refusal::new(Exit::Usage, format!("{what}: {error}")).hint(PATTERN_HINT)
}

/// Reads the name of a mark.
///
/// # Errors
/// What is wrong with it: nothing in a folder has such a name.
pub(super) fn mark(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty: leave the option out if nothing is meant".to_owned()),
        "." | ".." => Err("every folder has that".to_owned()),
        text if text.contains('/') => {
            Err("it is a path, and has to be a name in a folder".to_owned())
        }
        text if text.contains(':') => {
            Err("it has a colon: the content of files is not looked at, give the name alone"
                .to_owned())
        }
        name => Ok(name.to_owned()),
    }
}

/// What this computer and its clock say.
pub(crate) fn with_environment(options: BackupOptions) -> BackupOptions {
    BackupOptions { cores: cores(), client_time_ns: SystemClock.now_ns(), ..options }
}

/// Threads that this computer has cores for; a quota below one still takes a thread.
pub(crate) fn cores() -> usize {
    (holdall_sys::cpu::available_cores().ceil() as usize).max(1)
}

/// Who runs this, for display.
pub(crate) fn user_name() -> String {
    let uid = holdall_sys::users::effective_uid();
    let users = holdall_sys::users::Users::load().unwrap_or_default();
    users
        .user_name(uid)
        .map_or_else(|| uid.to_string(), |name| String::from_utf8_lossy(name).into())
}
