//! Frames: byte strings one after another, each behind its length (u32).

use bytes::Bytes;
use holdall_format::FormatError;
use holdall_format::wire::Reader;

use super::MAX_FRAMES;

/// The parts of a body, in order, kept apart so that blocks are sent without being copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    parts: Vec<Bytes>,
    total_bytes: u64,
}

impl Frames {
    /// A body without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// A body of one part, without a length before it.
    pub fn plain(bytes: Bytes) -> Self {
        let mut body = Self::new();
        body.push_plain(bytes);
        body
    }

    /// Frames for all of `frames`, none longer than 4 GiB.
    pub fn framed(frames: &[Bytes]) -> Self {
        let mut body = Self::new();
        frames.iter().for_each(|frame| body.push_frame(frame.clone()));
        body
    }

    /// Appends a length and the bytes.
    pub fn push_frame(&mut self, bytes: Bytes) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.push_plain(Bytes::copy_from_slice(&length.to_le_bytes()));
        self.push_plain(bytes);
    }

    /// Appends bytes as they are.
    pub fn push_plain(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
            self.parts.push(bytes);
        }
    }

    /// Length of the whole body.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The parts, none of them empty.
    pub fn into_parts(self) -> Vec<Bytes> {
        self.parts
    }

    /// The body in one buffer.
    pub fn concat(&self) -> Bytes {
        self.parts.concat().into()
    }
}

/// Reads frames; each is a slice of `body`.
///
/// Untrusted: at most [`MAX_FRAMES`] frames of at most `max_frame_bytes` each.
///
/// # Errors
/// [`FormatError`] for more or longer frames, or a body that ends inside one.
pub fn decode_frames(body: &Bytes, max_frame_bytes: usize) -> Result<Vec<Bytes>, FormatError> {
    let mut reader = Reader::new("body", body);
    let mut frames = Vec::new();
    while !reader.remaining().is_empty() {
        if frames.len() == MAX_FRAMES {
            return Err(reader.invalid("frames", "more than their limit"));
        }
        let length = reader.length("frame length", max_frame_bytes)?;
        frames.push(body.slice_ref(reader.bytes("frame", length)?));
    }
    Ok(frames)
}

/// Reads those frames that came whole of a body that was cut short.
///
/// Untrusted, with the limits and errors of [`decode_frames`].
pub fn decode_whole_frames(
    body: &Bytes,
    max_frame_bytes: usize,
) -> Result<Vec<Bytes>, FormatError> {
    let mut whole_bytes = 0;
    let behind = |at: usize| body.get(at..).and_then(<[u8]>::split_first_chunk);
    while let Some((length, rest)) = behind(whole_bytes)
        && let Some(frame) = rest.get(..u32::from_le_bytes(*length) as usize)
    {
        whole_bytes += length.len() + frame.len();
    }
    decode_frames(&body.slice(..whole_bytes), max_frame_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn more_frames_than_the_limit_are_refused() {
        let body = Bytes::from(vec![0; 4 * (MAX_FRAMES + 1)]);
        assert!(decode_frames(&body, 10).is_err());
        assert_eq!(decode_frames(&body.slice(4..), 10).unwrap().len(), MAX_FRAMES);
    }

    #[test]
    fn a_declared_length_over_the_limit_is_refused() {
        let body = Frames::framed(&[Bytes::from(vec![0; 11])]).concat();
        assert!(decode_frames(&body, 11).is_ok());
        assert!(decode_frames(&body, 10).is_err());
    }

    proptest! {
        #[test]
        fn frames_read_back(frames: Vec<Vec<u8>>) {
            let frames: Vec<_> = frames.into_iter().map(Bytes::from).collect();
            let body = Frames::framed(&frames);
            prop_assert_eq!(body.total_bytes(), body.concat().len() as u64);
            prop_assert_eq!(decode_frames(&body.concat(), 1 << 20), Ok(frames));
        }

        #[test]
        fn of_a_body_that_was_cut_the_frames_before_the_cut_are_read(
            frames: Vec<Vec<u8>>, cut in 0usize..1000,
        ) {
            let frames: Vec<_> = frames.into_iter().map(Bytes::from).collect();
            let body = Frames::framed(&frames).concat();
            let cut = cut.min(body.len());
            let mut end = 0;
            let whole = frames.iter().take_while(|frame| {
                end += 4 + frame.len();
                end <= cut
            });
            let whole: Vec<Bytes> = whole.cloned().collect();
            prop_assert_eq!(decode_whole_frames(&body.slice(..cut), 1 << 20), Ok(whole));
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes: Vec<u8>, limit in 0usize..300) {
            if let Ok(frames) = decode_frames(&Bytes::from(bytes), limit) {
                prop_assert!(frames.iter().all(|frame| frame.len() <= limit));
            }
        }
    }
}
