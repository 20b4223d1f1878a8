//! Buffers of bodies, kept for the next body.
//!
//! The system takes a large buffer back page by page and hands the next one out in the same way,
//! zeroed: while a large file came in, that was a ninth of the server's time.

use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};

/// Smaller ones are as cheap to make.
const LEAST_BYTES: usize = 256 << 10;
/// Most bytes that are kept: a put for each of a client's streams.
const KEPT_BYTES: usize = 16 << 20;

/// Buffers that are free.
#[derive(Default)]
pub(crate) struct Buffers {
    free: Mutex<Vec<BytesMut>>,
}

impl Buffers {
    /// An empty buffer that has room for so many bytes.
    pub(crate) fn take(&self, bytes: usize) -> BytesMut {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = free.iter().position(|buffer| buffer.capacity() >= bytes);
        match fitting.filter(|_| bytes >= LEAST_BYTES) {
            Some(at) => free.swap_remove(at),
            None => BytesMut::with_capacity(bytes),
        }
    }

    /// Keeps a body's buffer, if nobody else has a part of it and there is room.
    pub(crate) fn give_back(&self, body: Bytes) {
        let Ok(mut buffer) = body.try_into_mut() else { return };
        buffer.clear();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = free.iter().map(BytesMut::capacity).sum();
        if buffer.capacity() >= LEAST_BYTES && kept + buffer.capacity() <= KEPT_BYTES {
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(buffers: &Buffers, bytes: usize) -> Bytes {
        let mut buffer = buffers.take(bytes);
        buffer.resize(bytes, 1);
        buffer.freeze()
    }

    #[test]
    fn a_large_buffer_serves_again_and_is_empty() {
        let buffers = Buffers::default();
        let first = body(&buffers, 1 << 20);
        let place = first.as_ptr();
        buffers.give_back(first);
        let second = buffers.take(LEAST_BYTES);
        assert_eq!((second.as_ptr(), second.len()), (place, 0));
    }

    #[test]
    fn small_ones_surplus_and_what_is_in_use_are_not_kept() {
        let buffers = Buffers::default();
        buffers.give_back(body(&buffers, LEAST_BYTES - 1));
        let shared = body(&buffers, 1 << 20);
        buffers.give_back(shared.clone());
        assert!(buffers.free.lock().unwrap().is_empty());
        drop(shared);
        let many: Vec<Bytes> = (0..40).map(|_| body(&buffers, 1 << 20)).collect();
        many.into_iter().for_each(|body| buffers.give_back(body));
        let kept: usize = buffers.free.lock().unwrap().iter().map(BytesMut::capacity).sum();
        assert_eq!(kept, KEPT_BYTES);
    }
}
