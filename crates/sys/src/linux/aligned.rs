//! Memory that begins where the system wants it for reads and writes that go around its cache.

/// Where every buffer begins and of what its length is a multiple: no device asks for more.
pub const ALIGNMENT: usize = 4096;

/// A buffer of bytes that begins at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuffer {
    /// Never grows, so it never moves.
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// `len_bytes` zeros.
    #[must_use]
    pub fn new(len_bytes: usize) -> Self {
        let memory = vec![0; len_bytes + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Self { memory, start, len: len_bytes }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_begins_at_a_multiple_and_has_its_length() {
        for len in [0, 1, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::new(len);
            assert_eq!(buffer.bytes_mut().as_ptr().align_offset(ALIGNMENT), 0, "{len}");
            assert_eq!(buffer.bytes().len(), len);
        }
    }
}
