//! `holdall agent install`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

use anyhow::{Context, Result};
use holdall_agent::units::{Place, REPLACED_TIMERS, UNIT, system_unit, user_unit};
use holdall_state::private_file;
use holdall_sys::users;
use serde::Serialize;

use super::plan;
use crate::app::App;
use crate::config::home;
use crate::exit::{Exit, Refusal};

/// Where the system's units are that its owner wrote.
const SYSTEM_UNITS: &str = "/etc/systemd/system";

/// Has systemd run the agent, now and after each start
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall agent install                  (for yourself)
          sudo -i holdall agent install --system (for the whole computer, with root's config.toml)
          holdall agent install --print          (only shows the unit)

It writes a unit, enables and starts it, and disables the timers that packaging/install brought, whose work the agent does. Run it \
again when the program has moved, or a set has another directory as its repository.

Your own agent ends when you log out, unless `sudo loginctl enable-linger $USER` has it stay.

Exit codes: 0 done, 1 failed, 2 wrong usage, 13 only root may do that")]
pub(crate) struct Args {
    /// Installs the unit of the whole computer, as root
    #[arg(long)]
    system: bool,
    /// Prints the unit, and changes nothing
    #[arg(long)]
    print: bool,
    /// Stops the agent and removes the unit
    #[arg(long, conflicts_with = "print")]
    remove: bool,
}

pub(super) fn run(args: &Args, app: &App) -> Result<Exit> {
    if args.print {
        let (file, text) = (folder(args)?.join(UNIT), unit(args, app)?);
        told(app, &file, Told { text: Some(&text), ..Told::default() })?;
        text.lines().try_for_each(|line| app.output.result(line))?;
        return Ok(Exit::Done);
    }
    if args.system && users::effective_uid() != 0 {
        return Err(Refusal::new(Exit::NotAllowed, "the unit of the whole computer is root's")
            .hint("`sudo -i holdall agent install --system`, or leave --system out for your own")
            .into());
    }
    let file = folder(args)?.join(UNIT);
    let manager = Manager { is_system: args.system };
    match args.remove {
        true => remove(app, &manager, &file)?,
        false => install(app, &manager, &file, &unit(args, app)?)?,
    }
    Ok(Exit::Done)
}

#[derive(Default, Serialize)]
struct Told<'a> {
    unit: String,
    is_installed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// The timers that are off now.
    disabled: Vec<&'static str>,
}

fn told(app: &App, file: &Path, told: Told<'_>) -> Result<()> {
    let unit = file.display().to_string();
    Ok(app.output.object("agent_unit", &Told { unit, ..told })?)
}

fn unit(args: &Args, app: &App) -> Result<String> {
    let program = env::current_exe().context("cannot tell where this program is")?;
    let folders =
        [("HOLDALL_CONFIG_DIR", &app.folders.config), ("HOLDALL_CACHE_DIR", &app.folders.cache)];
    let is_named =
        |(name, _): &(&str, &PathBuf)| env::var_os(name).is_some_and(|set| !set.is_empty());
    let variables = folders.into_iter().filter(is_named);
    let variables: Vec<_> = variables.map(|(name, folder)| (name, folder.clone())).collect();
    let own = variables.iter().map(|(_, folder)| folder.clone());
    let writable = own.chain(plan::directories(app)).collect();
    let place = Place { program, variables, writable };
    Ok(if args.system { system_unit(&place) } else { user_unit(&place) })
}

/// Where the unit goes.
fn folder(args: &Args) -> Result<PathBuf, Refusal> {
    if args.system {
        return Ok(PathBuf::from(SYSTEM_UNITS));
    }
    let named = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = named.filter(|folder| folder.is_absolute());
    let config = config.or_else(|| home().map(|home| home.join(".config")));
    config.map(|config| config.join("systemd/user")).ok_or_else(|| {
        Refusal::new(Exit::Usage, "HOME names no folder for the unit").hint("set HOME")
    })
}

fn install(app: &App, manager: &Manager, file: &Path, unit: &str) -> Result<()> {
    // The timers may back up what no set names.
    if app.settings().sets.is_empty() {
        let message = "config.toml has no [sets.NAME], so that the agent would back nothing up";
        return Err(Refusal::new(Exit::Usage, message)
            .hint("`holdall config generate` prints an example")
            .into());
    }
    let is_new = !file.exists();
    private_file::replace(file, unit.as_bytes())?;
    // Nothing in it is a secret, and systemd complains of units that not everybody may read.
    fs::set_permissions(file, fs::Permissions::from_mode(0o644))?;
    if let Err(error) = manager.run(&["daemon-reload"]) {
        if is_new {
            // Without systemd, it would be in nobody's service.
            let _ = fs::remove_file(file);
        }
        return Err(error);
    }
    app.output.note(format_args!("wrote {}", file.display()));
    let is_on = |timer: &&str| manager.run(&["is-enabled", "--quiet", timer]).is_ok();
    let disabled: Vec<_> = REPLACED_TIMERS.into_iter().filter(is_on).collect();
    for timer in &disabled {
        manager.run(&["disable", "--now", timer])?;
        app.output.note(format_args!("disabled {timer}: the agent does its work"));
    }
    manager.run(&["enable", UNIT])?;
    manager.run(&["restart", UNIT])?;
    told(app, file, Told { is_installed: true, disabled, ..Told::default() })?;
    app.output.say("the agent runs; `holdall agent status` shows what it does")?;
    Ok(())
}

fn remove(app: &App, manager: &Manager, file: &Path) -> Result<()> {
    manager.run(&["disable", "--now", UNIT])?;
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.with_context(|| format!("cannot remove {}", file.display()))?,
    }
    manager.run(&["daemon-reload"])?;
    told(app, file, Told::default())?;
    app.output.say("the agent is stopped, and does not start again")?;
    Ok(())
}

/// The service manager, of the system or of this user.
struct Manager {
    is_system: bool,
}

impl Manager {
    fn run(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new("systemctl");
        command.args((!self.is_system).then_some("--user")).args(args);
        let output = command.stdin(Stdio::null()).output().context("cannot run systemctl")?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let message = format!("systemctl {}: {said}", args.join(" "));
        Err(Refusal::new(Exit::Failed, message)
            .hint("without systemd, have something else start `holdall agent`, and start it again when it ends")
            .into())
    }
}
