//! What the repository says of itself, asked for a few seconds.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::Result;
use holdall_protocol::{Announced, Usage};
use holdall_sys::thread;

use crate::app::App;
use crate::opening::open::{self, Patience};

/// Who has not answered by then is away, as far as status is concerned.
const PATIENCE: Duration = Duration::from_secs(6);

/// What the repository said, or why it said nothing.
pub(super) type Seen = std::result::Result<Answer, String>;

/// What the repository said.
pub(super) struct Answer {
    pub(super) usage: Usage,
    pub(super) announced: Announced,
}

/// A question that is on its way.
pub(super) struct Asked(Option<Receiver<Result<Answer>>>);

/// Asks the repository, on a thread that is left behind if it hangs. No key is needed for that.
pub(super) fn ask(app: &App) -> Asked {
    let (tell, told) = channel();
    let app = app.silent();
    let asking = thread::start_alone(move || drop(tell.send(answer(&app))));
    Asked(asking.is_ok().then_some(told))
}

impl Asked {
    /// The answer, or why there is none.
    pub(super) fn answer(self) -> Seen {
        let late = || format!("no answer within {} s", PATIENCE.as_secs());
        let answered = self.0.ok_or("no thread can be started")?.recv_timeout(PATIENCE);
        answered.map_err(|_| late())?.map_err(|error| format!("{error:#}"))
    }
}

fn answer(app: &App) -> Result<Answer> {
    let patience = Patience { retry_for: Duration::ZERO, ..Patience::default() };
    let opened = open::place(app, patience)?;
    let usage = opened.keeper.repository().usage()?;
    Ok(Answer { usage, announced: opened.keeper.announced()? })
}
