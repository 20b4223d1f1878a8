//! Windows: runs of work in tree order, with the chunks that they need.
//!
//! What the work is, only those know who plan it and who do it.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use holdall_meter::StageMeter;
use holdall_tree::{ChunkRef, Content, Entry};

use super::directory::Directory;
use super::layout::{DataRun, Layout};
use super::links::Membership;
use super::order::{Chunk, Order};
use super::split_file::SplitFile;

/// Content bytes at which a window is closed.
pub(crate) const WINDOW_BYTES: u64 = 4 << 20;
/// Work items at which a window is closed.
const WINDOW_ITEMS: usize = 4096;
/// Chunks at which a window is closed.
const WINDOW_CHUNKS: usize = 8192;
/// Items of a batch, which one writer takes at once.
const BATCH_ITEMS: usize = 32;
/// Chunk bytes of a batch.
const BATCH_BYTES: u64 = 1 << 20;

/// An entry that is written in one go.
pub(super) struct Item<'a> {
    pub(super) directory: Directory<'a>,
    pub(super) name: Box<[u8]>,
    /// Attributes and extents lie in it.
    pub(super) entry: Entry,
    pub(super) layout: Layout,
    pub(super) membership: Membership,
    /// Its chunks in the window, `[start, end)`.
    pub(super) chunks: (u32, u32),
}

/// Something for a writer to do.
pub(super) enum Work<'a> {
    /// Make sure that a directory is there.
    Directory(Directory<'a>),
    /// Make an entry.
    Item(Box<Item<'a>>),
    /// Write one chunk of a file that is too large for a window.
    Piece { file: Arc<SplitFile<'a>>, position: u64, chunk: u32 },
}

/// A window that is being filled.
pub(crate) struct Window<W> {
    work: Vec<W>,
    chunks: Vec<ChunkRef>,
    bytes: u64,
}

/// A closed window on its way to the writers; its chunks come through `chunks`.
pub(crate) struct ClosedWindow<W> {
    pub(crate) work: Vec<W>,
    pub(crate) chunks: Receiver<Vec<Chunk>>,
}

/// Where closed windows go.
pub(crate) struct Outlets<W> {
    pub(crate) orders: Sender<Order>,
    pub(crate) windows: Sender<ClosedWindow<W>>,
}

/// The window that is being filled, and where it goes when it is full.
pub(crate) struct Output<'m, W> {
    pub(crate) window: Window<W>,
    windows_closed: u64,
    outlets: Outlets<W>,
    meter: &'m StageMeter,
}

/// The walk ended early: the receivers are gone, and why is known elsewhere.
pub(crate) struct Ended;

/// What an entry keeps in memory: what lies in it, and where the runs of a sparse file belong.
pub(super) fn held_bytes(entry: &Entry) -> u64 {
    /// A run takes two bytes at least where it is stored.
    const RUN_BYTES: u64 = size_of::<DataRun>() as u64 / 2;
    let held = |content: &Content| match content {
        Content::Inline(bytes) => bytes.len() as u64,
        Content::Chunks(_) | Content::List { .. } => 0,
    };
    let extents = entry.extents.as_ref().map_or(0, held);
    held(&entry.attributes) + held(&entry.content) + extents * (1 + RUN_BYTES)
}

/// What one writer takes at once.
pub(super) struct Batch<'a> {
    pub(super) work: Vec<Work<'a>>,
    pub(super) chunks: Arc<Vec<Chunk>>,
}

impl<W> Default for Window<W> {
    fn default() -> Self {
        Self { work: Vec::new(), chunks: Vec::new(), bytes: 0 }
    }
}

impl<'m, W> Output<'m, W> {
    pub(crate) fn new(outlets: Outlets<W>, meter: &'m StageMeter) -> Self {
        Self { window: Window::default(), windows_closed: 0, outlets, meter }
    }

    /// Closes the window if it is full.
    pub(crate) fn pass_on_full(&mut self) -> Result<(), Ended> {
        if self.window.is_full() { self.pass_on() } else { Ok(()) }
    }

    /// Closes the window.
    pub(crate) fn pass_on(&mut self) -> Result<(), Ended> {
        let window = std::mem::take(&mut self.window);
        let (order, closed) = window.close(self.windows_closed);
        self.windows_closed += 1;
        let Outlets { orders, windows } = &self.outlets;
        let sent = self.meter.waiting_out(|| {
            // The window first: its place in the order is what bounds how far ahead this goes.
            windows.send(closed).is_ok() && orders.send(order).is_ok()
        });
        if sent { Ok(()) } else { Err(Ended) }
    }
}

impl<W> Window<W> {
    /// Whether so many more bytes would make it too large.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        self.bytes == 0 || self.bytes.saturating_add(bytes) <= WINDOW_BYTES
    }

    fn is_full(&self) -> bool {
        self.bytes >= WINDOW_BYTES
            || self.work.len() >= WINDOW_ITEMS
            || self.chunks.len() >= WINDOW_CHUNKS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    pub(crate) fn push(&mut self, work: W) {
        self.work.push(work);
    }

    /// Counts bytes that the work itself holds.
    pub(crate) fn weigh(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Adds a chunk and gives its place.
    pub(crate) fn push_chunk(&mut self, chunk: ChunkRef) -> u32 {
        self.bytes += u64::from(chunk.len_bytes);
        self.chunks.push(chunk);
        u32::try_from(self.chunks.len() - 1).unwrap_or(u32::MAX)
    }

    /// How many chunks there are.
    pub(super) fn chunk_count(&self) -> u32 {
        u32::try_from(self.chunks.len()).unwrap_or(u32::MAX)
    }

    /// Divides the window into the order for its chunks and its work.
    fn close(self, window: u64) -> (Order, ClosedWindow<W>) {
        let (reply, chunks) = crossbeam_channel::bounded(1);
        (Order { window, chunks: self.chunks, reply }, ClosedWindow { work: self.work, chunks })
    }
}

impl Work<'_> {
    fn chunk_bytes(&self, chunks: &[Chunk]) -> u64 {
        let len = |at: u32| match chunks.get(at as usize) {
            Some(Ok(bytes)) => bytes.len() as u64,
            _ => 0,
        };
        match self {
            Self::Directory(_) => 0,
            Self::Item(item) => (item.chunks.0..item.chunks.1).map(len).sum(),
            Self::Piece { chunk, .. } => len(*chunk),
        }
    }
}

/// Divides a window's work into batches, in order.
pub(super) fn batches<'a>(
    work: Vec<Work<'a>>,
    chunks: Vec<Chunk>,
) -> impl Iterator<Item = Batch<'a>> {
    let chunks = Arc::new(chunks);
    let mut rest = work.into_iter().peekable();
    std::iter::from_fn(move || {
        rest.peek()?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_ITEMS && bytes < BATCH_BYTES {
            let Some(work) = rest.next() else { break };
            bytes += work.chunk_bytes(&chunks);
            batch.push(work);
        }
        Some(Batch { work: batch, chunks: Arc::clone(&chunks) })
    })
}
