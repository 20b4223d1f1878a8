//! Deletions of snapshots and blocks on a server: asked for with an administrator's token, and announced to
//! whoever would lose by them, as are rules that keep less.

use std::path::PathBuf;

use anyhow::Result;
use holdall_protocol::{AdminToken, Announced, WaitingDeletion};

use crate::app::App;
use crate::config::PasswordSettings;
use crate::exit::{Exit, Refusal};
use crate::opening::keeper::Keeper;
use crate::secrets::password::{ADMIN_TOKEN, Passwords};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output::{counted, local_time};

/// Where an administrator's token comes from; never an argument.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// A file with an administrator's token, which a server asks for [else: HOLDALL_ADMIN_TOKEN_FILE,
    /// HOLDALL_ADMIN_TOKEN_COMMAND, HOLDALL_ADMIN_TOKEN]
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// The token, if one is given.
    ///
    /// # Errors
    /// If the place that was named does not yield one, or something else.
    pub(crate) fn read(&self, interrupt: &Interrupt) -> Result<Option<AdminToken>> {
        let file = self.admin_token_file.as_deref();
        let given =
            Passwords::new(ADMIN_TOKEN, file, &PasswordSettings::default(), interrupt)?.given()?;
        let Some(text) = given else { return Ok(None) };
        let token = AdminToken::from_text(&text).ok_or_else(|| {
            Refusal::new(Exit::Usage, "this is not an administrator's token")
                .hint("`holdall admin token REPOSITORY` prints one on the server")
        })?;
        Ok(Some(token))
    }
}

/// What is announced, for who has something else to do: a server that does not say is no reason not to
/// do it.
pub(crate) fn announced(keeper: &Keeper) -> Announced {
    keeper.announced().unwrap_or_default()
}

/// Tells what is announced.
pub(crate) fn tell(app: &App, announced: &Announced) {
    announced.deletions.iter().for_each(|deletion| app.output.note(in_words(deletion)));
    if let Some(from_ns) = announced.fewer_kept_from_ns {
        app.output.note(fewer_kept(from_ns));
    }
}

/// That rules will keep less, in words.
pub(crate) fn fewer_kept(from_ns: i64) -> String {
    format!(
        "after {} fewer snapshots will be kept, as requested; `holdall admin retention` on the server shows \
         the rules and changes them",
        local_time(from_ns)
    )
}

/// A deletion that waits, in words.
pub(crate) fn in_words(deletion: &WaitingDeletion) -> String {
    let WaitingDeletion { number, snapshots, blocks, whole, due_ns, .. } = deletion;
    let what = match (snapshots.len(), *blocks) {
        _ if *whole => "the whole repository".to_owned(),
        (0, blocks) => format!("{} that gave way to others", counted(blocks, "block")),
        (1, _) => "a snapshot".to_owned(),
        (many, _) => counted(many as u64, "snapshot"),
    };
    format!(
        "{what} will be deleted after {}, as requested; `holdall admin cancel {number}` on \
         the server takes that back",
        local_time(*due_ns)
    )
}
