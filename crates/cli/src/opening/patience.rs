//! Says whom is waited for where a file system does not answer, as a server's that went away: the system's calls do not
//! end then, and nor does what waits for them in good order.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use holdall_engine::Run;

use crate::app::App;
use crate::terminal::output::Shown;

/// Who answers takes less.
const PATIENCE: Duration = Duration::from_secs(5);
/// So often a run is looked at.
const LOOK_UP: Duration = Duration::from_millis(500);

/// Looks at paths before a run: the first signal ends the process meanwhile. The thread that looks takes none, so it
/// must not be the one that signals come to first.
///
/// # Errors
/// Those of `look`; [`Refusal`](crate::exit::Refusal) if a signal came before.
pub(crate) fn looking_at<R: Send>(
    app: &App,
    paths: &[&[u8]],
    look: impl FnOnce() -> Result<R> + Send,
) -> Result<R> {
    let (done, over) = channel::<()>();
    let look = move || {
        let seen = look();
        drop(done);
        seen
    };
    thread::scope(|scope| {
        app.interrupt.while_waiting(|| {
            let looks = holdall_sys::thread::start(scope, look)?;
            if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let paths = paths.iter().map(|path| Shown(path).to_string()).collect::<Vec<_>>();
                app.output.urge(format_args!(
                    "waiting for {}: a file system does not answer; Ctrl-C ends this at once",
                    paths.join(" or ")
                ));
            }
            looks.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// Works, and says whom the run waits for if that takes long. Then the first signal ends the process.
pub(crate) fn watching<R>(app: &App, run: &Run, work: impl FnOnce() -> R) -> R {
    let (done, over) = channel::<()>();
    thread::scope(|scope| {
        let watch = move || {
            let mut told: Option<Vec<u8>> = None;
            while over.recv_timeout(LOOK_UP) == Err(RecvTimeoutError::Timeout) {
                let waits = run.waits_for().filter(|(_, since)| *since >= PATIENCE);
                app.interrupt.ends_at_once(waits.is_some());
                let Some((path, _)) = waits else { continue };
                if told.as_ref() != Some(&path) {
                    let ends = if run.stopping() { "another Ctrl-C" } else { "Ctrl-C" };
                    app.output.urge(format_args!(
                        "waiting for {}: its file system does not answer; {ends} ends this at once",
                        Shown(&path)
                    ));
                    told = Some(path);
                }
            }
            app.interrupt.ends_at_once(false);
        };
        // Without another thread the run goes on and says nothing.
        let _ = holdall_sys::thread::start(scope, watch);
        let result = work();
        drop(done);
        result
    })
}
