//! What a stream is made of, and putting it together.

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_channel::Receiver;

use crate::restore::{Chunk, ClosedWindow};
use crate::run::lock;
use crate::{EngineError, Run};

/// As many zeros as are written at once.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A piece of the stream.
pub(super) enum Part {
    /// These bytes: a header, say.
    Bytes(Vec<u8>),
    /// So many zeros: a hole, or padding.
    Zeros(u64),
    /// A range of a chunk of the window, which is content of that path.
    Chunk { at: u32, range: Range<usize>, path: Arc<[u8]> },
}

/// The first thing that went wrong on any thread.
#[derive(Default)]
pub(super) struct Failure {
    happened: AtomicBool,
    first: Mutex<Option<EngineError>>,
}

impl Failure {
    /// Notes an error; only the first is kept.
    pub(super) fn note(&self, error: EngineError) {
        lock(&self.first).get_or_insert(error);
        self.happened.store(true, Ordering::Relaxed);
    }

    pub(super) fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// Gives the first error, if there was one.
    pub(super) fn outcome(&self) -> Result<(), EngineError> {
        lock(&self.first).take().map_or(Ok(()), Err)
    }
}

/// Writes windows as their chunks arrive. Ends early, without an error of its own, where chunks do
/// not come: why is noted by those who fetch them.
pub(super) fn write_out(
    windows: Receiver<ClosedWindow<Part>>,
    out: &mut dyn Write,
    run: &Run,
) -> Result<(), EngineError> {
    for window in windows {
        let Ok(chunks) = window.chunks.recv() else { return Ok(()) };
        for part in &window.work {
            run.check()?;
            write_part(part, &chunks, out, run)?;
        }
    }
    out.flush().map_err(cannot_write)
}

fn write_part(
    part: &Part,
    chunks: &[Chunk],
    out: &mut dyn Write,
    run: &Run,
) -> Result<(), EngineError> {
    match part {
        Part::Bytes(bytes) => out.write_all(bytes).map_err(cannot_write),
        Part::Zeros(bytes) => write_zeros(*bytes, out, run),
        Part::Chunk { at, range, path } => {
            let damaged = |reason: &str| {
                let what = format!("the content of {}", String::from_utf8_lossy(path));
                EngineError::damaged(what, reason)
            };
            let chunk = match chunks.get(*at as usize) {
                Some(Ok(bytes)) => bytes,
                Some(Err(reason)) => return Err(damaged(reason)),
                None => return Err(damaged("a chunk is missing")),
            };
            let bytes = chunk.get(range.clone()).ok_or_else(|| damaged("a chunk is too short"))?;
            run.advance(0, bytes.len() as u64);
            out.write_all(bytes).map_err(cannot_write)
        }
    }
}

fn write_zeros(mut bytes: u64, out: &mut dyn Write, run: &Run) -> Result<(), EngineError> {
    while bytes > 0 {
        run.check()?;
        let len = usize::try_from(bytes).unwrap_or(usize::MAX).min(ZEROS.len());
        out.write_all(&ZEROS[..len]).map_err(cannot_write)?;
        bytes -= len as u64;
    }
    Ok(())
}

fn cannot_write(error: std::io::Error) -> EngineError {
    EngineError::io("writing what is dumped", error)
}
