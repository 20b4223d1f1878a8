//! Measuring the path to a server, with what a backup uses: TLS, and the machine's key.

use super::body::Sink;
use super::{Caller, ClientOptions, ServerAddress, Weight};
use crate::wire::{self, Frames, LabVerb, MAX_LAB_BYTES, Route, decode_lab_taken};
use crate::{MachineIdentity, RepositoryError};

/// A server, as the far end of a measurement.
pub struct MeasuredServer {
    caller: Caller,
}

impl MeasuredServer {
    /// Reaches the server. Whether the machine may measure shows with the first request.
    ///
    /// # Errors
    /// [`RepositoryError::Unreachable`] after one attempt within the connect timeout;
    /// [`RepositoryError::WrongServer`].
    pub fn connect(
        address: &ServerAddress,
        identity: &MachineIdentity,
        options: ClientOptions,
    ) -> Result<Self, RepositoryError> {
        let caller = Caller::new(address, identity, options)
            .map_err(|error| RepositoryError::Refused { reason: error.to_string() })?;
        caller.reach()?;
        Ok(Self { caller })
    }

    /// The host that answered last.
    pub fn host_reached(&self) -> &str {
        self.caller.host_reached()
    }

    /// Sends `pieces`, which the server forgets; returns when it has all of them.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] over [`MAX_LAB_BYTES`], or if it took less; what else a request
    /// may meet.
    pub fn take(&self, pieces: &Frames) -> Result<(), RepositoryError> {
        let route = Route::Lab(LabVerb::Take);
        let limits = (Weight::Light, wire::MAX_CONTROL_BYTES);
        let taken = self.caller.ask(&route, pieces, limits, |body| decode_lab_taken(&body))?;
        match taken.bytes == pieces.total_bytes() {
            true => Ok(()),
            false => Err(RepositoryError::Refused { reason: "the server took less".into() }),
        }
    }

    /// Asks for `bytes`, at most [`MAX_LAB_BYTES`], and forgets them.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if another number came; what else a request may meet.
    pub fn give(&self, bytes: u64) -> Result<(), RepositoryError> {
        let route = Route::Lab(LabVerb::Give(bytes));
        let counted = self.caller.ask_into(&route, &Frames::new(), Counted::default)?;
        match counted.0 == bytes {
            true => Ok(()),
            false => Err(RepositoryError::Refused { reason: "the server gave less".into() }),
        }
    }
}

/// Counts what comes.
#[derive(Default)]
struct Counted(u64);

impl Sink for Counted {
    fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        self.0 += piece.len() as u64;
        match self.0 <= MAX_LAB_BYTES as u64 {
            true => Ok(()),
            false => Err(format!("the answer is over {MAX_LAB_BYTES} bytes")),
        }
    }
}
