//! Makes `docs/reference.md`: every command, option, exit code, variable and file.
//!
//! What the code says of itself is taken from there: commands from the command line, exit codes, settings and files from
//! their definitions. What only words can say is here; tests here and in `tests/it` find what is missing. `TRYCMD=overwrite` writes the
//! page anew, as it does the recorded sessions.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::{Arg, Command};

const BEGINNING: &str = "\
# Reference

Every command, option, exit code, environment variable and file. It is made from the code by
`TRYCMD=overwrite cargo xtask test -p holdall -E 'test(/^reference::/)'`; a test finds what is missing or old.
`holdall man DIR` writes the same as man pages.
";

/// The variables that holdall reads, as the page lists them.
const VARIABLES: [(&str, &str); 34] = [
    ("HOLDALL_REPOSITORY", "The repository, as `-r`."),
    ("HOLDALL_PASSWORD", "The password."),
    ("HOLDALL_PASSWORD_FILE", "A file that holds the password, as `--password-file`."),
    ("HOLDALL_PASSWORD_COMMAND", "A command of the shell that prints the password."),
    ("HOLDALL_IDENTITY_FILE", "An age identity file or SSH private key, as `--identity`."),
    ("HOLDALL_NEW_PASSWORD", "The new password of `key add` and `key change`."),
    ("HOLDALL_FROM_REPOSITORY", "The second repository of `copy` and `check`, as `--from`."),
    (
        "HOLDALL_FROM_PASSWORD",
        "The password of the second repository, or of the one that `import` reads.",
    ),
    ("HOLDALL_FROM_PASSWORD_FILE", "A file that holds it, as `--from-password-file`."),
    ("HOLDALL_FROM_PASSWORD_COMMAND", "A command of the shell that prints it."),
    ("HOLDALL_FROM_IDENTITY_FILE", "An identity of the second repository, as `--from-identity`."),
    ("HOLDALL_ADMIN_TOKEN", "The administrator's token for deletions."),
    ("HOLDALL_ADMIN_TOKEN_FILE", "A file that holds it, as `--admin-token-file`."),
    ("HOLDALL_ADMIN_TOKEN_COMMAND", "A command of the shell that prints it."),
    ("HOLDALL_RETRY_FOR", "How long an unreachable server is tried, as `--retry-for`."),
    ("HOLDALL_LAB_TOKEN", "The token of `lab listen`, as `--token`."),
    ("HOLDALL_DATA", "The data folder of a server, as `--data`."),
    (
        "HOLDALL_WEB_NAMES",
        "Names by which browsers may reach a server, with commas between them, as `--web-name`.",
    ),
    ("HOLDALL_WEB_CERTIFICATE", "A certificate for browsers, as `--web-certificate`."),
    ("HOLDALL_WEB_KEY", "Its key, as `--web-key`."),
    (
        "HOLDALL_WEB_ACME",
        "Names that an authority gives a certificate for, with commas between them, as `--web-acme`.",
    ),
    ("HOLDALL_WEB_ACME_CONTACT", "Whom the authority may write to, as `--web-acme-contact`."),
    ("HOLDALL_WEB_ACME_DIRECTORY", "The authority's address, as `--web-acme-directory`."),
    ("HOLDALL_CONFIG_DIR", "The folder of `config.toml`, and of the state in `state` below it."),
    ("HOLDALL_CACHE_DIR", "The folder of the cache."),
    ("HOME", "The home folder: `~`, and the folders below it where no other is named."),
    ("XDG_CONFIG_HOME", "The folder in which `holdall/config.toml` is, if not `~/.config`."),
    ("XDG_STATE_HOME", "The folder in which `holdall` keeps its state, if not `~/.local/state`."),
    ("XDG_CACHE_HOME", "The folder in which `holdall` keeps its cache, if not `~/.cache`."),
    (
        "XDG_DATA_HOME",
        "The folder in which a user's server keeps its data, if not `~/.local/share`.",
    ),
    ("HOLDALL_SET", "Set for the hooks of a set: its name."),
    ("HOLDALL_RESULT", "Set for the hooks after a backup: its exit code."),
    ("HOLDALL_MESSAGE", "Set for the hooks after a backup: what went wrong, or nothing."),
    ("NO_COLOR", "Uses no colours if it is not empty, as `--no-color`."),
];
/// Those that libraries and systemd read or set.
const OTHERS_VARIABLES: [(&str, &str); 6] = [
    (
        "DBUS_SESSION_BUS_ADDRESS",
        "The bus of the desktop, on which the agent shows failures, if not that of the session.",
    ),
    (
        "DBUS_SYSTEM_BUS_ADDRESS",
        "The bus on which the agent finds UPower and NetworkManager, if not that of the system.",
    ),
    ("JOURNAL_STREAM", "Set by systemd: lines of the server's log then begin without a time."),
    ("TMPDIR", "The folder for temporary files, if not `/tmp`."),
    ("TZ", "The time zone in which times are shown and read, by name or as in POSIX."),
    (
        "WAYLAND_DISPLAY",
        "As `DISPLAY`, set by a desktop: `holdall browse` opens a browser only where one of them is.",
    ),
];

/// The page as the code has it.
fn page() -> String {
    let mut page = BEGINNING.to_owned();
    commands(&mut page);
    exit_codes(&mut page);
    page += "\n## Environment variables\n\nOptions come before variables, and variables before `config.toml`. One that is empty counts as not set.\n\n";
    page += "| variable | what it does |\n| --- | --- |\n";
    for (name, meaning) in VARIABLES.iter().chain(&OTHERS_VARIABLES) {
        let _ = writeln!(page, "| `{name}` | {meaning} |");
    }
    files(&mut page);
    page
}

fn commands(page: &mut String) {
    let mut line = crate::command_line();
    line.build();
    *page += "\n## Options of every command\n\nCommands that open no repository take only those that are about what is printed.\n\n";
    options(page, line.get_arguments().filter(|arg| arg.is_global_set()));
    *page += "\n## Commands\n";
    command(page, &line, "holdall");
}

/// A command, and then those below it.
fn command(page: &mut String, line: &Command, name: &str) {
    let below: Vec<_> = line.get_subcommands().filter(|below| below.get_name() != "help").collect();
    // One that has others below it may do something by itself.
    if !line.is_subcommand_required_set() && name != "holdall" {
        let about = line.get_about().map(ToString::to_string).unwrap_or_default();
        let usage = line.clone().render_usage().to_string();
        let _ =
            writeln!(page, "\n### {name}\n\n{about}.\n\n    {}\n", usage.replace("Usage: ", ""));
        options(page, line.get_arguments().filter(|arg| !is_everywhere(arg)));
        if let Some(after) = line.get_after_help() {
            let _ = writeln!(page, "\n```text\n{}\n```", after.to_string().trim_end());
        }
    }
    below.iter().for_each(|one| command(page, one, &format!("{name} {}", one.get_name())));
}

/// Whether the page has it elsewhere.
fn is_everywhere(arg: &Arg) -> bool {
    arg.get_id() == "help"
        || arg.get_help_heading() == Some(crate::app::EVERY_COMMAND)
        || arg.is_hide_set()
}

fn options<'a>(page: &mut String, options: impl Iterator<Item = &'a Arg>) {
    let mut options = options.peekable();
    if options.peek().is_some() {
        *page += "| option | what it does |\n| --- | --- |\n";
    }
    for option in options {
        let short = option.get_short().filter(|_| option.get_long().is_some());
        let short = short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let defaults = option.get_default_values().iter().map(|value| value.to_string_lossy());
        let defaults: Vec<_> = defaults.collect();
        let default = match &defaults[..] {
            [] => String::new(),
            _ if !option.get_action().takes_values() => String::new(),
            values => format!(" [default: {}]", values.join(" ")),
        };
        let variable = option.get_env().map(|name| format!(" [env: {}]", name.to_string_lossy()));
        let values = option.get_possible_values();
        let values: Vec<_> = values.iter().map(|value| value.get_name().to_owned()).collect();
        let values = match &values[..] {
            [] => String::new(),
            _ if !option.get_action().takes_values() => String::new(),
            values => format!(" [one of: {}]", values.join(", ")),
        };
        let what = format!("{help}{default}{}{values}", variable.unwrap_or_default());
        let what = what.replace('|', "\\|").replace('\n', " ");
        let _ = writeln!(page, "| `{short}{option}` | {what} |");
    }
}

fn exit_codes(page: &mut String) {
    let source = include_str!("exit.rs");
    *page += "\n## Exit codes\n\nScripts may branch on them: each keeps its meaning.\n\n| code | meaning |\n| --- | --- |\n";
    for (variant, meaning) in documented(source, "enum Exit") {
        let code = source.split(&format!("Self::{variant} => ")).nth(1).unwrap();
        let _ = writeln!(page, "| {} | {meaning} |", code.split(',').next().unwrap());
    }
}

fn files(page: &mut String) {
    *page += "\n## Files\n\n### Configuration: `~/.config/holdall/config.toml`\n\n";
    *page += "| key | what it does |\n| --- | --- |\n";
    let (settings, set, agent) = (
        include_str!("config/settings.rs"),
        include_str!("config/set.rs"),
        include_str!("config/agent.rs"),
    );
    for (source, head, table) in [
        (settings, "struct Settings", ""),
        (settings, "struct NamedRepository", "repositories.NAME."),
        (set, "struct Set", "sets.NAME."),
        (set, "struct Hooks", "sets.NAME.hooks."),
        (agent, "struct AgentSettings", "agent."),
    ] {
        for (field, meaning) in documented(source, &format!("{head} {{")) {
            let name = field.trim_start_matches("pub(crate) ").split(':').next().unwrap();
            let name = name.trim_start_matches("r#");
            let _ = writeln!(page, "| `{table}{name}` | {meaning} |");
        }
    }
    *page += "\n### State: `~/.local/state/holdall`\n\nOnly their owner may read them. Losing them loses access, unless there is a recovery kit.\n\n";
    *page += "| file | what it holds |\n| --- | --- |\n";
    for line in state_files() {
        let (file, meaning) = line.split_once(' ').unwrap();
        let _ = writeln!(page, "| `{file}` | {} |", meaning.trim());
    }
    *page += "\n### Cache: `~/.cache/holdall`\n\nThe whole folder may be deleted at any time. `CACHEDIR.TAG` says so to backups; `embedded` holds \
              what is remembered of repositories in folders, and each other folder the records and tree nodes of the repository that it \
              is named for.\n";
    *page += "\n### Server: `/var/lib/holdall`, or `~/.local/share/holdall` of a user\n\n[Running a server](server.md) says what is in it.\n";
}

/// The lines of the state crate's list of files.
fn state_files() -> impl Iterator<Item = &'static str> {
    let source = include_str!("../../state/src/lib.rs");
    let list = source.split("```").nth(1).unwrap().lines().skip(1);
    list.filter_map(|line| line.strip_prefix("//! ")).filter(|line| line.contains(' '))
}

/// What is declared in the first block that begins with `head`, each with its documentation.
fn documented(source: &'static str, head: &str) -> Vec<(&'static str, String)> {
    let block = source.split(head).nth(1).unwrap().split("\n}").next().unwrap();
    let mut meaning = String::new();
    let mut found = Vec::new();
    for line in block.lines().skip(1).map(str::trim) {
        match line.strip_prefix("/// ") {
            Some(words) => meaning = format!("{meaning} {words}").trim().to_owned(),
            None => found.push((line.trim_end_matches(','), std::mem::take(&mut meaning))),
        }
    }
    found
}

#[test]
fn the_page_is_that_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let page = page();
    if std::env::var_os("TRYCMD").is_some_and(|value| value == "overwrite") {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    let differing = page
        .lines()
        .zip(written.lines().chain(std::iter::repeat("")))
        .find(|(new, old)| new != old);
    assert!(
        page == written,
        "docs/reference.md is old; its top says how to make it: {differing:?}"
    );
}

#[test]
fn every_command_has_a_section_and_every_option_a_row() {
    fn look(line: &Command, name: &str, page: &str) {
        for below in line.get_subcommands() {
            look(below, &format!("{name} {}", below.get_name()), page);
        }
        if line.get_subcommands().next().is_some() {
            return;
        }
        let section =
            page.split(&format!("\n### {name}\n")).nth(1).unwrap_or_else(|| panic!("no {name}"));
        let section = section.split("\n### ").next().unwrap();
        for long in line.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long)
        {
            assert!(section.contains(&format!("--{long}")), "{name}: no --{long}");
        }
    }
    look(&crate::command_line(), "holdall", &page());
}
