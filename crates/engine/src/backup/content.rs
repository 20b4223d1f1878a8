//! Cutting content into chunks, whatever it comes from: a file's data, its holes left out, or
//! attributes too large for their entry.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use holdall_crypto::IdKeys;
use holdall_format::limits::CHUNK_MAX_BYTES;
use holdall_sys::sparse::Extent;
use holdall_sys::stat;
use holdall_tree::{ChunkRef, Chunker, Content, ContentBuilder};

use super::file_data::FileData;
use super::meters::Meters;
use crate::EngineError;
use crate::pipeline::budget::Grant;
use crate::pipeline::concurrency::Concurrency;
use crate::storing::{NewChunk, Piece, Shared};

/// How much is looked at at once at most, with what was carried over: a few chunks, beside which that is
/// small.
const SEGMENT_BYTES: usize = 2 * CHUNK_MAX_BYTES;

/// Where content comes from.
pub(crate) trait Bytestream {
    /// How many bytes are still to come, as far as is known.
    fn expected_bytes(&self) -> u64;

    /// Reads on, and appends `wanted` bytes to `segment`; `true` if there were fewer until the end. Memory that
    /// `segment` has room in is not zeroed before.
    ///
    /// # Errors
    /// What the system says; what was read before may have been appended.
    fn append(&mut self, segment: &mut Vec<u8>, wanted: usize) -> io::Result<bool>;
}

impl Bytestream for &[u8] {
    fn expected_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn append(&mut self, segment: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
        Ok(self.take(wanted as u64).read_to_end(segment)? < wanted)
    }
}

/// The data of a file, extent by extent.
pub(super) struct FileStream<'a> {
    file: &'a File,
    extents: std::slice::Iter<'a, Extent>,
    offset: u64,
    left_bytes: u64,
    expected_bytes: u64,
    /// Where the last data that were read end.
    read_to: u64,
    /// Where the file ended, if that was before the end of an extent: it was cut short meanwhile.
    pub(super) cut_short_at: Option<u64>,
}

impl<'a> FileStream<'a> {
    pub(super) fn new(file: &'a File, data: &'a FileData) -> Self {
        let (extents, expected_bytes) = (data.extents.iter(), data.bytes());
        let (offset, left_bytes, read_to, cut_short_at) = (0, 0, 0, None);
        Self { file, extents, offset, left_bytes, expected_bytes, read_to, cut_short_at }
    }

    /// Where a file ends whose data end at the place that is read.
    fn end_now(&self) -> io::Result<u64> {
        // It may have been cut in the hole before this, or have grown again.
        let size = stat::of_fd(self.file)?.size;
        Ok(size.clamp(self.read_to, self.offset))
    }
}

impl Bytestream for FileStream<'_> {
    fn expected_bytes(&self) -> u64 {
        self.expected_bytes
    }

    fn append(&mut self, segment: &mut Vec<u8>, wanted: usize) -> io::Result<bool> {
        let mut missing = wanted as u64;
        while missing > 0 {
            if self.left_bytes == 0 {
                let Some(extent) = self.extents.next() else { return Ok(true) };
                (self.offset, self.left_bytes) = (extent.offset, extent.len_bytes);
                self.file.seek(SeekFrom::Start(self.offset))?;
            }
            let part = self.left_bytes.min(missing);
            let read = self.file.take(part).read_to_end(segment)? as u64;
            self.offset += read;
            if read > 0 {
                self.read_to = self.offset;
            }
            self.left_bytes -= read;
            self.expected_bytes = self.expected_bytes.saturating_sub(read);
            missing -= read;
            if read < part {
                self.cut_short_at = Some(self.end_now()?);
                (self.extents, self.left_bytes) = ([].iter(), 0);
            }
        }
        Ok(false)
    }
}

/// Cuts contents into chunks for one job.
pub(crate) struct Cutter<'a> {
    pub(crate) ids: &'a IdKeys,
    pub(crate) chunker: &'a Chunker,
    pub(crate) boundary_key: [u8; 32],
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) meters: &'a Meters,
    pub(crate) readers: &'a Concurrency<'a>,
    pub(crate) job: u64,
}

impl Cutter<'_> {
    /// Waits for a share of the budget.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the run ended meanwhile.
    pub(crate) fn grant(&self, bytes: usize) -> Result<Arc<Grant>, EngineError> {
        let grant = self.meters.read.waiting_out(|| self.shared.budget.grant(self.job, bytes));
        grant.map(Arc::new).ok_or(EngineError::Interrupted)
    }

    /// Cuts a stream into chunks, which go to `pieces` with the list nodes that name them; `flush`
    /// is called between segments to hand on what is there.
    ///
    /// # Errors
    /// A read error in the inner result, which leaves chunks without a content that names them; in
    /// the outer one, that the run ended.
    pub(crate) fn cut(
        &self,
        stream: &mut dyn Bytestream,
        flush: &mut dyn FnMut(Vec<Piece>) -> Result<(), EngineError>,
    ) -> Result<io::Result<Content>, EngineError> {
        let mut builder = ContentBuilder::new(self.ids.clone(), self.boundary_key);
        let mut carry: Bytes = Bytes::new();
        loop {
            self.shared.check()?;
            // One byte more than is expected shows the end.
            let expected = usize::try_from(stream.expected_bytes()).unwrap_or(usize::MAX);
            let wanted = expected.saturating_add(1).min(SEGMENT_BYTES - carry.len());
            let grant = self.grant(wanted + carry.len())?;
            // Few different capacities, so that the allocator can use freed segments again.
            let mut segment = Vec::with_capacity((wanted + carry.len()).next_power_of_two());
            segment.extend_from_slice(&carry);
            let read = self.meters.read.working(|| stream.append(&mut segment, wanted));
            let at_end = match read {
                Ok(at_end) => at_end,
                Err(error) => return Ok(Err(error)),
            };
            self.readers.did(0, (segment.len() - carry.len()) as u64);
            // A file that is shorter than it was when it was looked at.
            grant.shrink_to(segment.len());
            if segment.len() < segment.capacity() / 4 {
                segment.shrink_to_fit();
            }
            let mut segment = Bytes::from(segment);
            let mut pieces = Vec::new();
            self.meters.hash.working(|| {
                while let Some(chunk_bytes) = self.first_chunk(&segment, at_end) {
                    let chunk = segment.split_to(chunk_bytes);
                    self.push(&mut builder, chunk, &grant, &mut pieces)?;
                }
                Ok::<_, EngineError>(())
            })?;
            if at_end {
                let content = builder.finish(&mut node_sink(&mut pieces))?;
                flush(pieces)?;
                return Ok(Ok(content));
            }
            flush(pieces)?;
            carry = segment;
        }
    }

    /// The length of the first chunk, if it is known where that ends.
    fn first_chunk(&self, segment: &[u8], at_end: bool) -> Option<usize> {
        let rest = (at_end && !segment.is_empty()).then_some(segment.len());
        self.chunker.first_cut(segment).or(rest)
    }

    fn push(
        &self,
        builder: &mut ContentBuilder,
        bytes: Bytes,
        grant: &Arc<Grant>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), EngineError> {
        let chunk = self.chunk(bytes, grant, pieces);
        builder.push(chunk, &mut node_sink(pieces)).map_err(Into::into)
    }

    /// Names one chunk and adds it to the pieces.
    pub(crate) fn chunk(
        &self,
        bytes: Bytes,
        grant: &Arc<Grant>,
        pieces: &mut Vec<Piece>,
    ) -> ChunkRef {
        let id = self.ids.chunk_id(&bytes);
        let len_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        pieces.push(Piece::Chunk(NewChunk { id, bytes, _grant: Arc::clone(grant) }));
        ChunkRef { id, len_bytes }
    }
}

fn node_sink(
    pieces: &mut Vec<Piece>,
) -> impl FnMut(holdall_tree::BuiltNode) -> Result<(), EngineError> + '_ {
    |node| {
        pieces.push(Piece::Node(node));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_that_is_cut_in_a_hole_ends_there_and_never_before_what_was_read() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 4096], 0).unwrap();
        let extents = [0, 1 << 30].map(|offset| Extent { offset, len_bytes: 4096 }).to_vec();
        let data = FileData { size_bytes: 3 << 30, extents };
        for (size_now, end) in [(500_000, 500_000), (4096, 4096), (100, 4096)] {
            let mut stream = FileStream::new(&file, &data);
            let mut out = Vec::new();
            assert!(!stream.append(&mut out, 4096).unwrap());
            file.set_len(size_now).unwrap();
            assert!(stream.append(&mut out, 4096).unwrap());
            assert_eq!((stream.cut_short_at, out.len()), (Some(end), 4096));
            assert!(stream.append(&mut out, 1).unwrap());
        }
    }
}
