//! `holdall tag`.

use anyhow::{Context, Result};
use holdall_engine::{Amendment, Snapshot, UnlockedRepository};
use holdall_format::limits::{RECORD_MAX_TAGS, RECORD_NAME_MAX_BYTES};
use holdall_state::Receipts;
use serde::Serialize;

use crate::app::App;
use crate::arguments::sources::snapshot_name;
use crate::commands::snapshots::{JsonSnapshot, print};
use crate::exit::{Exit, Refusal};
use crate::opening::open;
use crate::report::listing;
use crate::terminal::output::{Shown, counted};

/// Changes tags of snapshots, and pins them
///
/// The snapshot and its id stay what they are. A pinned snapshot is kept whatever the rules for
/// forgetting say.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples: holdall tag latest --add before-upgrade --pin
          holdall tag 1f2e3d 4c5b6a --remove weekly
          holdall tag latest --set ''             takes all tags off
          holdall tag --token weekly              for `holdall admin retention --keep-tag`

Exit codes: 0 done, 1 failed, or no such snapshot, 2 wrong usage, 10 no such repository, 11 in use, \
12 wrong password, 13 not allowed, 14 server unreachable, 20 damage, 130 interrupted")]
pub(crate) struct Args {
    /// Snapshots: `latest`, or the beginning of an id
    #[arg(required_unless_present = "token", value_name = "SNAP", value_parser = snapshot_name)]
    snapshots: Vec<String>,
    #[command(flatten)]
    change: Change,
}

/// What is to become of tags and pin.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Puts a tag on
    #[arg(long = "add", value_name = "TAG", conflicts_with = "set")]
    add: Vec<String>,
    /// Takes a tag off
    #[arg(long = "remove", value_name = "TAG", conflicts_with = "set")]
    remove: Vec<String>,
    /// Has this tag and no others; given several times: these; '' for none
    #[arg(long = "set", value_name = "TAG")]
    set: Vec<String>,
    /// Keeps the snapshots whatever the rules for forgetting say
    #[arg(long, conflicts_with = "unpin")]
    pin: bool,
    /// Lets them be forgotten again
    #[arg(long)]
    unpin: bool,
    /// Prints the token of this tag for `holdall admin retention --keep-tag`, since a server cannot read tags
    #[arg(
        long,
        value_name = "TAG",
        conflicts_with_all = ["add", "remove", "set", "pin", "unpin", "snapshots"]
    )]
    token: Vec<String>,
}

impl Change {
    /// Checks what was typed, before any repository is opened.
    fn check(&self) -> Result<(), Refusal> {
        check_new(&self.add)?;
        // None at all takes all tags off.
        let set = self.set.iter().filter(|tag| !tag.is_empty()).cloned().collect::<Vec<_>>();
        check_new(&set)
    }

    /// The new state of a snapshot; `None` if it has it already.
    ///
    /// # Errors
    /// For more tags than a snapshot may have.
    fn of<'a>(&self, snapshot: &'a Snapshot) -> Result<Option<Amendment<'a>>, Refusal> {
        let before = &snapshot.secret.tags;
        let mut tags = Vec::new();
        let kept = before.iter().filter(|tag| self.set.is_empty() && !self.remove.contains(tag));
        for tag in kept.chain(&self.set).chain(&self.add) {
            if !tag.is_empty() && !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        let pinned = self.pin || (snapshot.pinned && !self.unpin);
        let is_new = tags != *before || pinned != snapshot.pinned;
        check_tags(&tags)?;
        Ok(is_new.then_some(Amendment { snapshot, tags, pinned }))
    }
}

/// Checks that a snapshot may be given these tags: what people could not see is none.
///
/// # Errors
/// As for [`check_tags`]; for one that is empty or has control characters.
pub(super) fn check_new(tags: &[String]) -> Result<(), Refusal> {
    check_tags(tags)?;
    match tags.iter().find(|tag| tag.is_empty() || tag.chars().any(char::is_control)) {
        Some(tag) => {
            let what = if tag.is_empty() { "is empty" } else { "has control characters" };
            Err(Refusal::new(Exit::Usage, format!("the tag {tag:?} {what}"))
                .hint("give one that can be read in a line"))
        }
        None => Ok(()),
    }
}

/// Checks that a snapshot may have these tags.
///
/// # Errors
/// For one that is too long, or too many.
pub(super) fn check_tags(tags: &[String]) -> Result<(), Refusal> {
    if tags.len() > RECORD_MAX_TAGS {
        let message = format!("{} tags; a snapshot has at most {RECORD_MAX_TAGS}", tags.len());
        return Err(Refusal::new(Exit::Usage, message).hint("give fewer, or remove some of them"));
    }
    match tags.iter().find(|tag| tag.len() > RECORD_NAME_MAX_BYTES) {
        Some(tag) => {
            let message =
                format!("a tag of {} bytes; {RECORD_NAME_MAX_BYTES} are allowed", tag.len());
            Err(Refusal::new(Exit::Usage, message).hint("give a shorter one"))
        }
        None => Ok(()),
    }
}

pub(crate) fn run(args: &Args, app: &App) -> Result<Exit> {
    args.change.check()?;
    let access = open::access(app)?;
    if !args.change.token.is_empty() {
        return tell_tokens(app, &access, &args.change.token);
    }
    let listed = listing::all(app, &access)?.snapshots;
    let mut chosen: Vec<&Snapshot> = Vec::new();
    for name in &args.snapshots {
        let snapshot = listing::named(&access, &listed, name, None)?;
        if !chosen.iter().any(|other| other.id == snapshot.id) {
            chosen.push(snapshot);
        }
    }
    let amendments = chosen.iter().map(|snapshot| args.change.of(snapshot));
    let amendments: Vec<_> = amendments.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    if let Some(stored) = holdall_engine::amend(&access, &amendments)? {
        Receipts::in_state(&app.folders.state)
            .remember_amendment(&access, &stored)
            .context("the snapshots were changed, but the receipt could not be kept")?;
    }
    // A change that was made succeeds, even if its report cannot be written.
    tell(app, &amendments, chosen.len()).unwrap_or_else(|error| {
        app.output.warn_unreported(
            format_args!("{} changed", counted(amendments.len() as u64, "snapshot")),
            &error,
        );
    });
    Ok(Exit::Done)
}

/// Says by which tokens a server knows tags.
fn tell_tokens(app: &App, access: &UnlockedRepository, tags: &[String]) -> Result<Exit> {
    #[derive(Serialize)]
    struct Token<'a> {
        tag: &'a str,
        token: String,
    }
    check_tags(tags)?;
    for tag in tags {
        let token = access.keys().tag_token(tag).to_string();
        app.output.result(format_args!("{token}  {}", Shown(tag.as_bytes())))?;
        app.output.object("tag_token", &Token { tag, token })?;
    }
    Ok(Exit::Done)
}

/// Shows the changed ones of so many snapshots as they are now.
fn tell(app: &App, amendments: &[Amendment<'_>], chosen: usize) -> Result<()> {
    #[derive(Serialize)]
    struct Summary {
        snapshots_changed: usize,
        snapshots_unchanged: usize,
    }
    let now = |amendment: &Amendment<'_>| {
        let mut snapshot = amendment.snapshot.clone();
        snapshot.secret.tags.clone_from(&amendment.tags);
        snapshot.pinned = amendment.pinned;
        snapshot
    };
    let changed: Vec<_> = amendments.iter().map(now).collect();
    for snapshot in &changed {
        app.output.object("snapshot", &JsonSnapshot::new(snapshot))?;
    }
    if !changed.is_empty() {
        print(app, &changed.iter().collect::<Vec<_>>())?;
    }
    let (changed, unchanged) = (changed.len(), chosen - changed.len());
    let summary = Summary { snapshots_changed: changed, snapshots_unchanged: unchanged };
    app.output.object("summary", &summary)?;
    app.output.say(format_args!("{changed} changed, {unchanged} unchanged"))?;
    Ok(())
}
