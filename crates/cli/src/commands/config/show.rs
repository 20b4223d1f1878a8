//! `holdall config show`: what counts, and where it comes from. No secret is shown: of a command only its program, since
//! passwords and tokens stand behind that.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::app::App;
use crate::config::{Document, Entry, FILE, Origin, Settings, below_home};
use crate::exit::Exit;
use crate::lab::remembered;
use crate::secrets::password::program_of;

/// Shows what is configured, each value with where it comes from
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example: holdall config show -r usb

It shows what counts for a command with the same -r, --password-file and environment. Passwords are not shown, and of commands \
only the program.

Exit codes: 0 done, 1 failed, 2 wrong usage, or something in config.toml is wrong")]
pub(crate) struct Args {}

/// A value.
struct Setting {
    key: String,
    /// Nothing where none is set.
    value: Option<String>,
    origin: Origin,
}

/// The same as programs see it.
#[derive(Serialize)]
struct JsonSetting<'a> {
    key: &'a str,
    value: Option<&'a str>,
    origin: &'static str,
    /// The flag or the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// The line of `config.toml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

pub(crate) fn run(app: &App) -> Result<Exit> {
    let text = Settings::text(&app.folders.config.join(FILE))?.unwrap_or_default();
    let document = Document::parse(&text).context("it was read before")?;
    let in_tables = document.keys().iter().filter_map(in_table);
    let settings: Vec<_> =
        folders(app).into_iter().chain(general(app)).chain(in_tables).chain(unsaid(app)).collect();
    let widest = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    for Setting { key, value, origin } in &settings {
        let (kind, name, line) = match origin {
            Origin::Flag(flag) => ("flag", Some(*flag), None),
            Origin::Environment(variable) => ("environment", Some(&**variable), None),
            Origin::File(key) => ("file", None, Some(document.line_of(key))),
            Origin::Default => ("default", None, None),
        };
        let value = value.as_deref();
        app.output.object("setting", &JsonSetting { key, value, origin: kind, name, line })?;
        let whence = match (name, line) {
            (Some(name), _) => name.to_owned(),
            (None, Some(line)) => format!("{FILE}, line {line}"),
            (None, None) => "default".to_owned(),
        };
        let value = value.unwrap_or("none");
        app.output.result(format_args!("{key:<widest$}  {value}  ({whence})"))?;
    }
    Ok(Exit::Done)
}

/// Where things are kept.
fn folders(app: &App) -> [Setting; 3] {
    let folder = |key: &str, folder: &PathBuf, variables: [&str; 2]| {
        let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let variable = variables.into_iter().find(is_set);
        let origin = variable.map(|name| Origin::Environment(name.to_owned()));
        let value = Some(folder.display().to_string());
        Setting { key: key.to_owned(), value, origin: origin.unwrap_or(Origin::Default) }
    };
    let folders = &app.folders;
    [
        folder("config_folder", &folders.config, ["HOLDALL_CONFIG_DIR", "XDG_CONFIG_HOME"]),
        folder("state_folder", &folders.state, ["HOLDALL_CONFIG_DIR", "XDG_STATE_HOME"]),
        folder("cache_folder", &folders.cache, ["HOLDALL_CACHE_DIR", "XDG_CACHE_HOME"]),
    ]
}

/// What counts for a command that names no set.
fn general(app: &App) -> Vec<Setting> {
    let setting = |key: &str, value, origin| Setting { key: key.to_owned(), value, origin };
    let [repository, identity, retry_for] =
        ["HOLDALL_REPOSITORY", "HOLDALL_IDENTITY_FILE", "HOLDALL_RETRY_FOR"];
    let place = remembered::place_in_words(app);
    let place = place.or_else(|| app.named_repository().map(str::to_owned));
    let origin = match (app.typed_repository(), app.preset()) {
        (Some(_), _) => Origin::Flag("-r"),
        (None, Some(preset)) if preset.named_by == repository => {
            Origin::Environment(repository.to_owned())
        }
        (None, Some(_)) => Origin::File("repository".to_owned()),
        (None, None) => Origin::Default,
    };
    let (of_password, password) = app.passwords.described();
    let mut all =
        vec![setting("repository", place, origin), setting("password", password, of_password)];
    if let Some(file) = &app.own_key {
        let named = env::var_os(identity).map(PathBuf::from);
        let is_named = named.and_then(|named| below_home(&named).ok()).as_ref() == Some(file);
        let origin = match is_named {
            true => Origin::Environment(identity.to_owned()),
            false => Origin::Flag("--identity"),
        };
        all.push(setting("identity", Some(file.display().to_string()), origin));
    }
    if let Some(fingerprint) = &app.fingerprint {
        all.push(setting("fingerprint", Some(fingerprint.clone()), Origin::Flag("--fingerprint")));
    }
    all.push(match env::var(retry_for).ok().filter(|value| !value.is_empty()) {
        Some(value) => setting("retry_for", Some(value), Origin::Environment(retry_for.to_owned())),
        None => setting("retry_for", Some("5m".to_owned()), Origin::Default),
    });
    all
}

/// What the tables of `config.toml` say: what stands outside of them is shown where it counts.
fn in_table(entry: &Entry) -> Option<Setting> {
    let (table, name) = entry.key.rsplit_once('.')?;
    let value = entry.value.as_deref()?;
    let is_script = name == "password_command" || table.ends_with(".hooks") && name != "timeout";
    let value = match name {
        _ if is_script => program_of(value),
        "command" => value.split(", ").next().unwrap_or_default(),
        _ => value,
    };
    let (key, origin) = (entry.key.clone(), Origin::File(entry.key.clone()));
    Some(Setting { key, value: Some(value.to_owned()), origin })
}

/// What counts for sets that do not say it.
fn unsaid(app: &App) -> Vec<Setting> {
    let default = |(name, key, value): (&String, &str, &str)| Setting {
        key: format!("sets.{name}.{key}"),
        value: Some(value.to_owned()),
        origin: Origin::Default,
    };
    let sets = app.settings().sets.iter().flat_map(|(name, set)| {
        let repository = set.repository.is_none().then_some("the default repository");
        let schedule = set.schedule.is_none().then_some("hourly");
        let repository = repository.map(|value| (name, "repository", value));
        repository.into_iter().chain(schedule.map(|value| (name, "schedule", value)))
    });
    sets.map(default).collect()
}
