//! The agent itself: one thread that sleeps until something happens, asks the schedule what to do, and does it.
//!
//! Each backup is a process of its own, `holdall agent run SET`: this one stays small, and a backup that dies takes nothing
//! along. What wakes it: the next moment of the schedule, a clock that is set, the end of a sleep, `config.toml`, a pause, what the
//! computer is like, the end of a backup, and a signal.

mod child;
mod following;
mod journal;
mod keeping;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, io};

use anyhow::{Context, Result};
use holdall_agent::journal::{Journal, Queue, WatchedSet};
use holdall_agent::{Ending, Notice, Plan, Scheduler, Step, Surroundings};
use holdall_state::AgentFiles;
use holdall_sys::alarm::Alarm;
use holdall_sys::folder_watch::FolderWatch;
use holdall_sys::{Clock, SystemClock, host, process, thread, waiting};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::App;
use crate::exit::{Exit, Refusal};
use child::{Child, Ended};
use keeping::Kept;

/// A sleep that is shorter changes nothing.
const SLEEP_NOTICED: Duration = Duration::from_secs(5);

/// Is the agent until a signal comes.
///
/// # Errors
/// If another process is, or the system refuses what it waits by.
pub(super) fn run(app: &App) -> Result<Exit> {
    if let Some(typed) = app.typed_repository() {
        let message = format!("the agent backs up to more than {typed}");
        return Err(Refusal::new(Exit::Usage, message)
            .hint("leave -r out: each set of config.toml may name its `repository`")
            .into());
    }
    let files = AgentFiles::in_state(&app.folders.state);
    let Some(_is_agent) = files.be_the_agent()? else {
        let who = files.agent().unwrap_or_else(|| "another process".to_owned());
        return Err(Refusal::new(Exit::InUse, format!("{who} is the agent already"))
            .hint("`holdall agent status` shows what it does")
            .into());
    };
    process::stand_back();
    let mut agent = Agent::new(app, files)?;
    agent.look_around();
    app.output.note(agent.greeting());
    while !agent.is_stopped()? {
        let until = agent.act()?;
        agent.keep_report();
        agent.wait(until)?;
        agent.look_around();
    }
    agent.stop()?;
    Ok(Exit::Done)
}

/// The agent at work.
struct Agent<'a> {
    app: &'a App,
    /// Where this program was at the start, and where a newer one is once it was replaced.
    program: PathBuf,
    kept: Kept,
    scheduler: Scheduler,
    /// What the schedule follows.
    plan: Plan,
    /// What is wrong in `config.toml`. Nothing begins until it is right.
    settings_problem: Option<String>,
    child: Option<Child>,
    /// What changed since the last runs; nothing where the system allows no thread for it.
    journal: Option<Journal>,
    /// What the journal follows.
    watched: Vec<WatchedSet>,
    surroundings: Surroundings,
    alarm: Alarm,
    watch: FolderWatch,
    /// Readable once a signal came.
    stop: UnixStream,
    slept: Duration,
}

impl<'a> Agent<'a> {
    fn new(app: &'a App, files: AgentFiles) -> Result<Self> {
        let kept = Kept::read(files, &app.output);
        let watch = FolderWatch::new().context("cannot watch folders")?;
        watch.add(kept.files().folder()).context("cannot watch the folder of the agent")?;
        // One that is made later is read when the agent wakes up for something else.
        let _ = watch.add(&app.folders.config);
        let (stop, mut tell) = UnixStream::pair()?;
        app.interrupt.tell(move || {
            // It is read as long as there is an agent to stop.
            let _ = tell.write_all(&[1]);
        });
        Ok(Self {
            app,
            program: env::current_exe().context("cannot tell where this program is")?,
            scheduler: Scheduler::new(kept.report().state.clone(), TimeZone::system(), now()),
            kept,
            plan: Plan::default(),
            settings_problem: None,
            child: None,
            journal: Journal::start(Queue::Unbounded).ok(),
            watched: Vec::new(),
            surroundings: Surroundings::watch()?,
            alarm: Alarm::new()?,
            watch,
            stop,
            slept: host::slept(),
        })
    }

    fn greeting(&self) -> String {
        match self.plan.sets.len() {
            0 => "nothing is to be backed up: config.toml has no sets".to_owned(),
            1 => "the agent backs up 1 set".to_owned(),
            sets => format!("the agent backs up {sets} sets"),
        }
    }

    fn is_stopped(&self) -> Result<bool> {
        Ok(waiting::is_ready(&self.stop)?)
    }

    /// Takes in all that may have changed.
    fn look_around(&mut self) {
        let slept = host::slept();
        if slept > self.slept + SLEEP_NOTICED {
            self.scheduler.woke_up(now());
        }
        self.slept = slept;
        self.follow_settings();
        self.scheduler.conditions_are(self.surroundings.now(), now());
        self.scheduler.pause_is(self.kept.pause(&self.app.output));
    }

    /// Does all that is to be done now; returns until when there is nothing.
    fn act(&mut self) -> Result<Option<Timestamp>> {
        self.take_in_end()?;
        loop {
            match self.scheduler.next(now()) {
                Step::Start { set, slow } => {
                    self.app.output.note(format_args!("backing up {set}"));
                    let child = self.back_up(set, slow);
                    self.start(child);
                }
                Step::Measure => {
                    self.app.output.detail("measuring disk and network");
                    let folder = self.kept.files().folder();
                    self.start(Child::measure(&self.program, folder, &self.app.output));
                }
                Step::Stop(hold) => {
                    self.app.output.note(format_args!("stopping: {hold}"));
                    self.child.iter().for_each(Child::terminate);
                }
                Step::Tell(notice) => self.tell(notice),
                Step::Wait(until) => return Ok(until),
            }
        }
    }

    fn start(&mut self, child: io::Result<Child>) {
        match child {
            Ok(child) => self.child = Some(child),
            Err(error) => {
                let message = format!("holdall cannot be started: {error}");
                let ending =
                    Ending { exit_code: Some(Exit::Failed.code()), message: Some(message) };
                self.scheduler.ended(ending, now());
            }
        }
    }

    /// Starts a backup that asks the journal what changed, if there is one.
    fn back_up(&self, set: String, slow: bool) -> io::Result<Child> {
        let files = self.kept.files();
        let Some(journal) = self.journal.as_ref().filter(|_| files.remove_changes().is_ok()) else {
            return Child::back_up(&self.program, set, slow, None, &self.app.output);
        };
        let (asks, asked) = UnixStream::pair()?;
        journal.run_started(&set, asked, journal::answer(&self.app.folders.state));
        let asks = Some((files.changes(), asks));
        Child::back_up(&self.program, set, slow, asks, &self.app.output)
    }

    /// Reports the end of a backup to the schedule and to the journal, if one has ended.
    fn take_in_end(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else { return Ok(()) };
        let Some(Ended { ending, committed }) = child.ended(self.app)? else { return Ok(()) };
        child.tell_end(self.app, &ending);
        if let (Some(journal), Some(set)) = (&self.journal, child.set()) {
            journal.run_ended(set, committed);
        }
        self.child = None;
        self.scheduler.ended(ending, now());
        Ok(())
    }

    /// Says it in the log, and on the desktop where there is one, which is not waited for.
    fn tell(&self, notice: Notice) {
        self.app.output.note(format_args!("{}: {notice}", notice.title()));
        let output = self.app.output.clone();
        let show = move || {
            if let Err(error) = holdall_agent::show(&notice) {
                output.detail(format_args!("this is not shown on a desktop: {error}"));
            }
        };
        // The log has it all the same.
        let _ = thread::start_alone(show);
    }

    fn wait(&self, until: Option<Timestamp>) -> Result<()> {
        let again = self.kept.again_in().and_then(|wait| now().checked_add(wait).ok());
        let until = [until, again].into_iter().flatten().min();
        let until_ns = until.and_then(|until| i64::try_from(until.as_nanosecond()).ok());
        self.alarm.set_ns(until_ns)?;
        let mut any_of = vec![
            self.alarm.as_fd(),
            self.watch.as_fd(),
            self.stop.as_fd(),
            self.surroundings.as_fd(),
        ];
        any_of.extend(self.child.iter().map(AsFd::as_fd));
        waiting::wait(&any_of)?;
        self.alarm.silence();
        self.watch.forget();
        Ok(())
    }

    /// Ends the backup that goes on, if one does.
    fn stop(&mut self) -> Result<()> {
        if let Some(child) = &mut self.child {
            self.app.output.note("stopping: the agent is to end");
            child.end(&self.alarm)?;
            self.take_in_end()?;
        }
        self.keep_report();
        Ok(())
    }
}

fn now() -> Timestamp {
    Timestamp::from_nanosecond(SystemClock.now_ns().into()).unwrap_or(Timestamp::UNIX_EPOCH)
}
