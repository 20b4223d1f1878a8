//! What is in a picture, as far as a test can tell.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

const WHITE: [u8; 3] = [255; 3];
/// A bar is at least so wide; letters and lines are not.
const BAR_PIXELS: usize = 8;

/// A picture, row by row.
pub(super) struct Picture {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    /// Reads a PNG of eight bits for each colour.
    pub(super) fn read(file: &Path) -> Self {
        let file = BufReader::new(File::open(file).expect("a picture"));
        let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("it fits into memory")];
        let frame = reader.next_frame(&mut bytes).expect("a whole one");
        assert_eq!(frame.bit_depth, png::BitDepth::Eight);
        let pixels = bytes[..frame.buffer_size()].chunks_exact(frame.color_type.samples());
        let pixels = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Self { width: frame.width as usize, pixels }
    }

    /// How many colours there are.
    pub(super) fn colours(&self) -> usize {
        self.pixels.iter().collect::<HashSet<_>>().len()
    }

    /// Which share of it is not white.
    pub(super) fn marked(&self) -> f64 {
        let marked = self.pixels.iter().filter(|pixel| **pixel != WHITE).count();
        marked as f64 / self.pixels.len() as f64
    }

    /// The last row with anything in it.
    pub(super) fn last_marked_row(&self) -> usize {
        let last = self.pixels.iter().rposition(|pixel| *pixel != WHITE);
        last.unwrap_or_default() / self.width
    }

    /// How many bars of this colour lie one below the other.
    pub(super) fn bars(&self, colour: [u8; 3]) -> usize {
        let is_bar =
            |row: &[[u8; 3]]| row.windows(BAR_PIXELS).any(|part| part == [colour; BAR_PIXELS]);
        let rows: Vec<bool> = self.pixels.chunks_exact(self.width).map(is_bar).collect();
        rows.windows(2).filter(|pair| pair[1] && !pair[0]).count()
    }
}
