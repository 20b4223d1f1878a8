//! Ctrl-C and SIGTERM: the first one asks everything to stop in good order, a second one ends the
//! process at once with exit code 130, and so does the first where somebody is waited for who knows of no
//! order. So does that a terminal goes away, unless it was started to outlive that (`nohup`).

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use holdall_engine::Run;
use holdall_protocol::WireMeter;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::exit::{Exit, Refusal};

/// Somebody who wants to know of the first signal.
type Listener = Box<dyn FnOnce() + Send>;

/// Has writing past the longest file that this process may make fail, in place of ending the process. By a
/// handler that does nothing: processes that are started have none, and would keep a signal that is ignored.
///
/// # Errors
/// What the system says.
pub(crate) fn survive_long_files() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

#[derive(Default)]
struct State {
    happened: bool,
    listeners: Vec<Listener>,
}

/// Whether somebody wishes the process to end, and who is told.
#[derive(Clone, Default)]
pub(crate) struct Interrupt {
    state: Arc<Mutex<State>>,
    flag: Arc<AtomicBool>,
    /// Whether the first signal ends the process.
    at_once: Arc<AtomicBool>,
    /// Whether something is to be done after a signal, too.
    is_followed: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes over the signals. Call it once.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupt = Self::default();
        let once = interrupt.flag();
        let at_once = &interrupt.at_once;
        let (mut heard, told) = UnixStream::pair()?;
        let outlives_terminal = holdall_sys::process::ignores(SIGHUP);
        let hangup = (!outlives_terminal).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            // In this order: the first signal only sets the flag, the second finds it set.
            let code = i32::from(Exit::Interrupted.code());
            signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&once))?;
            signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(at_once))?;
            signal_hook::flag::register(signal, Arc::clone(&once))?;
            signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
        }
        let listening = interrupt.clone();
        holdall_sys::thread::start_alone(move || {
            if heard.read_exact(&mut [0]).is_ok() {
                listening.happen();
            }
        })?;
        Ok(interrupt)
    }

    /// Reads what somebody else may never give, a pipe or a command: the first signal ends the process
    /// meanwhile.
    ///
    /// # Errors
    /// [`Refusal`] if a signal came before; those of `read`.
    pub(crate) fn while_waiting<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        self.ends_at_once(true);
        let given = self.refuse_if_happened().and_then(|()| read());
        self.ends_at_once(false);
        given
    }

    /// Says whether the first signal from now on ends the process, as somebody is waited for.
    pub(crate) fn ends_at_once(&self, at_once: bool) {
        let is_followed = self.is_followed.load(Ordering::SeqCst);
        self.at_once.store(at_once && !is_followed, Ordering::SeqCst);
    }

    /// From now on the first signal never ends the process, since something is to be done after it.
    pub(crate) fn is_followed_by_work(&self) {
        self.is_followed.store(true, Ordering::SeqCst);
        self.ends_at_once(false);
    }

    /// # Errors
    /// [`Refusal`] if a signal came.
    pub(crate) fn refuse_if_happened(&self) -> Result<()> {
        match self.flag.load(Ordering::SeqCst) {
            true => Err(Refusal::new(Exit::Interrupted, "interrupted").into()),
            false => Ok(()),
        }
    }

    /// A flag that is set once a signal came.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Calls `listener` when the first signal comes; at once if it came.
    pub(crate) fn tell(&self, listener: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.happened {
            drop(state);
            listener();
        } else {
            state.listeners.push(Box::new(listener));
        }
    }

    /// A new run that stops when a signal comes, and reads what its connections count from `wire`.
    pub(crate) fn run(&self, wire: &WireMeter) -> Arc<Run> {
        let mut run = Run::new();
        run.wire = wire.clone();
        let run = Arc::new(run);
        let watched = Arc::downgrade(&run);
        self.tell(move || {
            if let Some(run) = watched.upgrade() {
                run.stop();
            }
        });
        run
    }

    /// Acts as if a signal had come.
    pub(crate) fn happen(&self) {
        let mut state = self.state();
        state.happened = true;
        self.flag.store(true, Ordering::SeqCst);
        let listeners = std::mem::take(&mut state.listeners);
        drop(state);
        listeners.into_iter().for_each(|listener| listener());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_begun_before_and_after_a_signal_stop() {
        let interrupt = Interrupt::default();
        let before = interrupt.run(&WireMeter::default());
        interrupt.refuse_if_happened().unwrap();
        assert!(!before.stopping());
        interrupt.happen();
        interrupt.refuse_if_happened().unwrap_err();
        assert!(before.stopping() && interrupt.run(&WireMeter::default()).stopping());
    }
}
