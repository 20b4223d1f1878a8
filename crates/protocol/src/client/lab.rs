//! Measuring the path to a server, with what a backup uses: TLS, and the machine's key.

use std::cell::RefCell;
use std::sync::Arc;

use super::body::Sink;
use super::{Caller, ClientOptions, ServerAddress, Weight};
use crate::wire::{
    self, Frames, LabTaken, LabVerb, LabWritten, MAX_LAB_BYTES, Route, decode_lab_taken,
    decode_lab_written,
};
use crate::{MachineIdentity, RepositoryError, Traffic};

/// No version is longer.
const MAX_VERSION_BYTES: usize = 40;

/// A server, as the far end of a measurement.
pub struct MeasuredServer {
    caller: Arc<Caller>,
    weight: Weight,
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
        Ok(Self { caller: Arc::new(caller), weight: Weight::Light })
    }

    /// The same, asked from the local address at that place in [`ClientOptions::bind`], counted from 0
    /// and round again; only where that leads nowhere, from another one.
    #[must_use]
    pub fn over(&self, path: usize) -> Self {
        Self { caller: Arc::clone(&self.caller), weight: Weight::Over(path) }
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
        self.taken(pieces).map(drop)
    }

    /// The server's version, as it tells it: at most 40 characters, none of which controls a terminal. `None`
    /// of an older server, which does not tell.
    ///
    /// # Errors
    /// As for [`Self::take`].
    pub fn version(&self) -> Result<Option<String>, RepositoryError> {
        let told = self.taken(&Frames::new())?.version;
        let is_one = |version: &String| {
            version.len() <= MAX_VERSION_BYTES
                && version.bytes().all(|byte| byte.is_ascii_graphic())
        };
        Ok(told.filter(is_one))
    }

    fn taken(&self, pieces: &Frames) -> Result<LabTaken, RepositoryError> {
        let route = Route::Lab(LabVerb::Take);
        let limits = (self.weight, wire::MAX_CONTROL_BYTES);
        let taken = self.caller.ask(&route, pieces, limits, |body| decode_lab_taken(&body))?;
        match taken.bytes == pieces.total_bytes() {
            true => Ok(taken),
            false => Err(RepositoryError::Refused { reason: "the server took less".into() }),
        }
    }

    /// Sends `pieces`, at most [`MAX_PUT_BODY_BYTES`](wire::MAX_PUT_BODY_BYTES), which the server
    /// writes to its disk, makes durable and forgets.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if it does not know that request, as older ones do, or wrote less;
    /// [`RepositoryError::Io`] and [`RepositoryError::NoRoom`] of its disk; what else a request may
    /// meet.
    pub fn write(&self, pieces: &Frames) -> Result<LabWritten, RepositoryError> {
        let route = Route::Lab(LabVerb::Write);
        let limits = (self.weight, wire::MAX_CONTROL_BYTES);
        let written = self.caller.ask(&route, pieces, limits, |body| decode_lab_written(&body))?;
        match written.bytes == pieces.total_bytes() {
            true => Ok(written),
            false => Err(RepositoryError::Refused { reason: "the server wrote less".into() }),
        }
    }

    /// Bytes on the wire so far.
    pub fn traffic(&self) -> Traffic {
        self.caller.traffic()
    }

    /// Asks for `bytes`, at most [`MAX_LAB_BYTES`], and forgets them.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if another number came; what else a request may meet.
    pub fn give(&self, bytes: u64) -> Result<(), RepositoryError> {
        self.give_to(bytes, |_| {})
    }

    /// Asks for `bytes`, at most [`MAX_LAB_BYTES`], and hands them to `taker`, piece by piece as they
    /// come; more where an answer was cut and asked for again.
    ///
    /// # Errors
    /// As for [`Self::give`].
    pub fn give_to(&self, bytes: u64, taker: impl FnMut(&[u8])) -> Result<(), RepositoryError> {
        self.ask_for(bytes, LabVerb::Give(bytes), taker)
    }

    /// Asks for `bytes`, at most [`MAX_PUT_BODY_BYTES`](wire::MAX_PUT_BODY_BYTES), which the server reads
    /// from a file on its disk, and forgets them. The first request makes that file, and may ask for none.
    ///
    /// # Errors
    /// [`RepositoryError::Refused`] if it does not know that request, as older ones do, or another number
    /// came; [`RepositoryError::Io`] and [`RepositoryError::NoRoom`] of its disk; what else a request may
    /// meet.
    pub fn read(&self, bytes: u64) -> Result<(), RepositoryError> {
        self.ask_for(bytes, LabVerb::Read(bytes), |_| {})
    }

    fn ask_for(
        &self,
        bytes: u64,
        verb: LabVerb,
        taker: impl FnMut(&[u8]),
    ) -> Result<(), RepositoryError> {
        let route = Route::Lab(verb);
        // Each attempt has its own count, and all of them have one taker.
        let taker = RefCell::new(taker);
        let fresh = || Handed { bytes: 0, taker: &taker };
        let handed = self.caller.ask_into(&route, &Frames::new(), self.weight, fresh)?;
        match handed.bytes == bytes {
            true => Ok(()),
            false => Err(RepositoryError::Refused { reason: "the server gave less".into() }),
        }
    }
}

/// Counts what comes and hands it on.
struct Handed<'a, F> {
    bytes: u64,
    taker: &'a RefCell<F>,
}

impl<F: FnMut(&[u8])> Sink for Handed<'_, F> {
    fn take(&mut self, piece: &[u8]) -> Result<(), String> {
        self.bytes += piece.len() as u64;
        if self.bytes > MAX_LAB_BYTES as u64 {
            return Err(format!("the answer is over {MAX_LAB_BYTES} bytes"));
        }
        self.taker.borrow_mut()(piece);
        Ok(())
    }
}
