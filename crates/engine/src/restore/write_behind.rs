//! Lets what was restored leave memory soon after it was written.
//!
//! A write only fills memory, and the system would keep all of it until memory is full: everything that
//! others had there is pushed out for files that nobody asked to read, and gigabytes wait for the disk
//! when the restore is done. On a virtual computer whose host takes free memory back it is the slowest
//! step of all: each page is asked of the host again (`docs/decisions/0011-write-behind.md`). So a piece is
//! sent on its way to the disk once it is written, and dropped when [`LAG_BYTES`] were written after it;
//! by then a disk that keeps up has it. Nothing waits here: what a slower disk does not have yet stays in
//! memory, as it would have anyway.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use holdall_sys::page_cache;

use crate::run::lock;

/// Smaller pieces are left to the system: a call for each would cost more than it saves.
const PIECE_MIN_BYTES: u64 = 256 << 10;
/// Pieces of one file are sent on their way together up to this many bytes.
const TOGETHER_BYTES: u64 = 8 << 20;
/// What may be in memory behind what is being written.
const LAG_BYTES: u64 = 128 << 20;
/// Pieces that may be behind, as each may hold a file open.
const LAG_PIECES: usize = 128;

/// What was written last, oldest first.
#[derive(Default)]
pub(super) struct WriteBehind {
    pieces: Mutex<Pieces>,
}

#[derive(Default)]
struct Pieces {
    behind: VecDeque<Piece>,
    bytes: u64,
}

/// A part of a file, `[start, end)` in bytes.
#[derive(Clone)]
struct Piece {
    file: Arc<File>,
    range: Range<u64>,
}

impl WriteBehind {
    /// Notes that a part of a file was written.
    pub(super) fn wrote(&self, file: &Arc<File>, range: Range<u64>) {
        if range.end.saturating_sub(range.start) < PIECE_MIN_BYTES {
            return;
        }
        let piece = Piece { file: Arc::clone(file), range };
        let let_go = lock(&self.pieces).push(piece);
        for piece in let_go {
            page_cache::let_go(&piece.file, piece.range.start, piece.len_bytes());
        }
    }

    /// Lets go of a file.
    pub(super) fn forget(&self, file: &Arc<File>) {
        lock(&self.pieces).forget(file);
    }
}

impl Pieces {
    /// Adds a piece. Gives those to let go now: what goes on its way, and what was sent long ago.
    fn push(&mut self, piece: Piece) -> Vec<Piece> {
        self.bytes += piece.len_bytes();
        let last = self.behind.back_mut();
        if let Some(last) = last.filter(|last| last.goes_on_in(&piece)) {
            last.range.end = piece.range.end;
            return Vec::new();
        }
        let mut let_go: Vec<Piece> = self.behind.back().cloned().into_iter().collect();
        self.behind.push_back(piece);
        while self.bytes > LAG_BYTES || self.behind.len() > LAG_PIECES {
            let Some(oldest) = self.behind.pop_front() else { break };
            self.bytes -= oldest.len_bytes();
            let_go.push(oldest);
        }
        let_go
    }

    fn forget(&mut self, file: &Arc<File>) {
        self.behind.retain(|piece| !Arc::ptr_eq(&piece.file, file));
        self.bytes = self.behind.iter().map(Piece::len_bytes).sum();
    }
}

impl Piece {
    fn len_bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether `next` follows in the same file and both are not too much together.
    fn goes_on_in(&self, next: &Self) -> bool {
        Arc::ptr_eq(&self.file, &next.file)
            && self.range.end == next.range.start
            && self.len_bytes() + next.len_bytes() <= TOGETHER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Arc<File> {
        Arc::new(tempfile::tempfile().unwrap())
    }

    fn piece(file: &Arc<File>, start: u64, len_bytes: u64) -> Piece {
        Piece { file: Arc::clone(file), range: start..start + len_bytes }
    }

    /// Where pieces start and end.
    fn ranges(pieces: Vec<Piece>) -> Vec<(u64, u64)> {
        pieces.into_iter().map(|piece| (piece.range.start, piece.range.end)).collect()
    }

    #[test]
    fn chunks_that_follow_each_other_go_on_their_way_together() {
        let (mut pieces, file) = (Pieces::default(), file());
        let chunk = TOGETHER_BYTES / 4;
        for at in 0..4 {
            assert_eq!(ranges(pieces.push(piece(&file, at * chunk, chunk))), []);
        }
        assert_eq!(ranges(pieces.push(piece(&file, 4 * chunk, chunk))), [(0, TOGETHER_BYTES)]);
    }

    #[test]
    fn a_gap_or_another_file_sends_what_was_written_before() {
        let (mut pieces, one, other) = (Pieces::default(), file(), file());
        assert_eq!(ranges(pieces.push(piece(&one, 0, 10))), []);
        assert_eq!(ranges(pieces.push(piece(&one, 20, 10))), [(0, 10)]);
        assert_eq!(ranges(pieces.push(piece(&other, 30, 10))), [(20, 30)]);
    }

    #[test]
    fn what_was_written_is_let_go_twice_and_no_more_than_the_lag_stays() {
        let (mut pieces, file) = (Pieces::default(), file());
        let count = 3 * LAG_BYTES / TOGETHER_BYTES;
        let mut times = vec![0; count as usize];
        for at in 0..count {
            for (start, _) in ranges(pieces.push(piece(&file, at * TOGETHER_BYTES, TOGETHER_BYTES)))
            {
                times[(start / TOGETHER_BYTES) as usize] += 1;
            }
            assert!(pieces.bytes <= LAG_BYTES, "{} bytes behind {at}", pieces.bytes);
        }
        let lag = (LAG_BYTES / TOGETHER_BYTES) as usize;
        let (gone, kept) = times.split_at(times.len() - lag);
        assert!(gone.iter().all(|times| *times == 2), "{times:?}");
        // The last one is not sent yet.
        assert_eq!(kept.iter().sum::<usize>(), lag - 1, "{times:?}");
    }

    #[test]
    fn no_more_than_so_many_files_are_held_open() {
        let mut pieces = Pieces::default();
        let files: Vec<_> = (0..2 * LAG_PIECES).map(|_| file()).collect();
        for file in &files {
            pieces.push(piece(file, 0, PIECE_MIN_BYTES));
        }
        let held = files.iter().filter(|file| Arc::strong_count(file) > 1).count();
        assert_eq!(held, LAG_PIECES);
    }

    #[test]
    fn a_file_that_is_removed_is_held_no_longer() {
        let (mut pieces, removed, kept) = (Pieces::default(), file(), file());
        for file in [&removed, &kept, &removed] {
            pieces.push(piece(file, 0, 10));
        }
        pieces.forget(&removed);
        assert_eq!((Arc::strong_count(&removed), Arc::strong_count(&kept)), (1, 2));
        assert_eq!(pieces.bytes, 10);
    }

    #[test]
    fn small_pieces_are_left_to_the_system() {
        let (behind, file) = (WriteBehind::default(), file());
        behind.wrote(&file, 0..PIECE_MIN_BYTES - 1);
        assert_eq!(lock(&behind.pieces).bytes, 0);
        behind.wrote(&file, 0..PIECE_MIN_BYTES);
        assert_eq!(lock(&behind.pieces).bytes, PIECE_MIN_BYTES);
    }
}
