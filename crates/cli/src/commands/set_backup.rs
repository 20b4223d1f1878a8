//! From a set of `config.toml` to the very arguments of `holdall backup` that somebody would type for it.

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use super::backup;
use crate::config::Set;
use crate::exit::{Exit, Refusal};
use crate::terminal::output::sentence;

/// A command line that has nothing but a backup.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    backup: backup::Args,
}

/// What is wrong with an option of a set.
#[derive(Debug)]
pub(crate) struct BadOption {
    /// Its key in the set; empty where it is none alone.
    pub(crate) key: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

/// What `holdall backup` would be given for a set.
///
/// # Errors
/// What is wrong with an option.
pub(crate) fn parse(set: &Set) -> Result<backup::Args, BadOption> {
    let words = std::iter::once(OsString::from("backup")).chain(set.arguments());
    let line = Line::try_parse_from(words).map_err(|error| bad_option(&error))?;
    Ok(line.backup)
}

/// Whether its patterns can be understood, without those in files.
///
/// # Errors
/// What is wrong with one.
pub(crate) fn check_patterns(backup: &backup::Args) -> Result<(), BadOption> {
    let bad = |(option, error): (&str, anyhow::Error)| BadOption {
        key: option.trim_start_matches("--").to_owned(),
        reason: sentence(&error),
    };
    backup.check_patterns().map_err(bad)
}

/// The same, for the set of that name.
///
/// # Errors
/// [`Refusal`] names the key.
pub(crate) fn arguments(name: &str, set: &Set) -> Result<backup::Args, Refusal> {
    parse(set).map_err(|BadOption { key, reason }| {
        let message =
            format!("sets.{name}{}{key}: {reason}", if key.is_empty() { "" } else { "." });
        Refusal::new(Exit::Usage, message).hint("`holdall config validate` shows where that is")
    })
}

/// What clap says of an option, without the words of the command line around it.
fn bad_option(error: &clap::Error) -> BadOption {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg).unwrap_or_default();
    let option = option.split([' ', '=']).next().unwrap_or_default();
    let key = option.trim_start_matches("--").replace('-', "_");
    let why = std::error::Error::source(error).map(ToString::to_string);
    let reason = match (text(ContextKind::InvalidValue), why) {
        (Some(value), Some(why)) => format!("{value:?} is refused: {why}"),
        _ => error.kind().to_string(),
    };
    BadOption { key, reason }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// A set that says everything that one can say, each key once.
    const WHOLE: &str = r#"
        paths = ["/a"]
        exclude = ["*.o"]
        iexclude = ["*.bak"]
        exclude_file = ["/rules"]
        exclude_caches = true
        exclude_if_present = [".nobackup"]
        exclude_larger_than = "2G"
        one_file_system = true
        use_fs_snapshot = true
        files_from = ["/list"]
        tag = ["daily"]
        host = "ada"
        as = ["/a=/b"]
        accept_empty = ["/a"]
        read_all = true
        no_self_check = true
        retry_for = "5m"
        limit_upload = "2MB"
        bind = ["127.0.0.1"]
        streams = 2
    "#;

    #[test]
    fn a_set_can_say_each_option_of_a_backup_but_what_is_for_one_run_alone() {
        let command = "name = \"shop.dump\"\ncommand = [\"pg_dump\", \"shop\"]";
        let words = [WHOLE, command].map(|text| {
            let set: Set = toml::from_str(text).unwrap();
            parse(&set).unwrap();
            set.arguments()
        });
        let words = words.concat();
        let said = |option: &str| {
            let option = format!("--{option}");
            words.iter().any(|word| word.to_str().unwrap().split('=').next() == Some(&option))
        };
        let line = Line::command();
        let options = line.get_arguments().filter_map(clap::Arg::get_long);
        let unsaid: Vec<_> = options.filter(|option| !said(option)).collect();
        assert_eq!(unsaid, ["dry-run", "changes"]);
    }

    #[test]
    fn an_option_that_is_refused_is_told_by_its_key() {
        let refused = |text: &str| {
            let BadOption { key, reason } = parse(&toml::from_str(text).unwrap()).unwrap_err();
            format!("{key}: {reason}")
        };
        assert!(
            refused("paths = [\"/\"]\nlimit_upload = \"2XB\"")
                .starts_with("limit_upload: \"2XB\" is refused: a rate is")
        );
        assert!(refused("paths = [\"/\"]\nstreams = 9").starts_with("streams: \"9\" is refused: "));
        assert!(refused("paths = [\"/\"]\nhost = \"\"").starts_with("host: "));
    }
}
