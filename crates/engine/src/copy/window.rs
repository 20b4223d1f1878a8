//! Windows: runs of entries in tree order, with the chunks that they need.

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use holdall_meter::StageMeter;
use holdall_tree::{ChunkRef, Entry, PathKey};

use crate::EngineError;
use crate::storing::{Change, NewChunk};

/// Content bytes at which a window is closed.
const WINDOW_BYTES: u64 = 4 << 20;
/// Steps at which a window is closed.
const WINDOW_STEPS: usize = 1024;
/// Chunks at which a window is closed.
const WINDOW_CHUNKS: usize = 2048;
/// Windows that are planned and not taken yet.
const WINDOWS_AHEAD: usize = 4;

/// What is to be done, in the order of the new tree.
pub(super) enum Step {
    /// So many of the window's next chunks go on with the content that is being built.
    Fetched(usize),
    /// A chunk that was copied before, as the destination has it, goes on with it.
    Known(ChunkRef),
    /// The content is complete.
    EndContent,
    /// An entry of the source, after all of its contents that are not in itself: attributes,
    /// extents, content.
    Entry { path: PathKey, entry: Box<Entry>, change: Change },
    /// An entry as the destination has it already.
    Keep { path: PathKey, entry: Box<Entry> },
}

/// A chunk under its new id, or why it cannot be had.
pub(super) type Copied = Result<NewChunk, String>;

/// A closed window; its chunks come through `chunks`.
pub(super) struct Window {
    pub(super) number: u64,
    pub(super) steps: Vec<Step>,
    pub(super) chunks: Receiver<Vec<Copied>>,
}

/// Chunks of the source that a window needs.
pub(super) struct Order {
    pub(super) window: u64,
    pub(super) chunks: Vec<ChunkRef>,
    pub(super) reply: Sender<Vec<Copied>>,
}

/// The window that is being filled, and where it goes when it is full.
pub(super) struct Output<'a> {
    orders: Sender<Order>,
    windows: Sender<Window>,
    meter: &'a StageMeter,
    closed: u64,
    steps: Vec<Step>,
    chunks: Vec<ChunkRef>,
    bytes: u64,
}

impl<'a> Output<'a> {
    /// An output, and where its orders and its windows come out.
    pub(super) fn new(meter: &'a StageMeter) -> (Self, Receiver<Order>, Receiver<Window>) {
        // A window bounds the orders too: each is sent behind its window.
        let (orders, orders_out) = unbounded();
        let (windows, windows_out) = bounded(WINDOWS_AHEAD);
        let (steps, chunks) = Default::default();
        let output = Self { orders, windows, meter, closed: 0, steps, chunks, bytes: 0 };
        (output, orders_out, windows_out)
    }

    /// Adds a chunk that must be fetched.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if nobody takes windows any more.
    pub(super) fn fetch(&mut self, chunk: ChunkRef) -> Result<(), EngineError> {
        self.bytes += u64::from(chunk.len_bytes);
        self.chunks.push(chunk);
        if let Some(Step::Fetched(count)) = self.steps.last_mut() {
            *count += 1;
            return self.pass_on_full();
        }
        self.push(Step::Fetched(1))
    }

    /// Adds anything else.
    ///
    /// # Errors
    /// As for [`Output::fetch`].
    pub(super) fn push(&mut self, step: Step) -> Result<(), EngineError> {
        self.steps.push(step);
        self.pass_on_full()
    }

    fn pass_on_full(&mut self) -> Result<(), EngineError> {
        let full = self.bytes >= WINDOW_BYTES
            || self.steps.len() >= WINDOW_STEPS
            || self.chunks.len() >= WINDOW_CHUNKS;
        if full { self.pass_on() } else { Ok(()) }
    }

    /// Closes the window.
    ///
    /// # Errors
    /// As for [`Output::fetch`].
    pub(super) fn pass_on(&mut self) -> Result<(), EngineError> {
        let (steps, chunks) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.chunks));
        let number = self.closed;
        self.closed += 1;
        self.bytes = 0;
        let (reply, copied) = bounded(1);
        let window = Window { number, steps, chunks: copied };
        // Whoever takes windows is gone only when the run has failed.
        let sent = self.meter.waiting_out(|| self.windows.send(window));
        sent.map_err(|_| EngineError::Interrupted)?;
        if chunks.is_empty() {
            // The window may be gone already, which is found out with the next.
            let _ = reply.send(Vec::new());
            return Ok(());
        }
        let order = Order { window: number, chunks, reply };
        self.orders.send(order).map_err(|_| EngineError::Interrupted)
    }
}
