//! Contents: none, little, and lengths around the boundaries of chunks, inline contents and
//! blocks; content that compresses and that does not, and that is there twice.

use std::io;

use super::place::Place;

pub(super) fn make(place: &mut Place, boundaries_bytes: &[usize]) -> io::Result<()> {
    place.file(b"empty", b"")?;
    place.file(b"one-byte", b"x")?;
    place.file(b"one-zero", b"\0")?;
    place.file(b"binary", &(0..=255).collect::<Vec<u8>>())?;
    for &boundary in boundaries_bytes {
        for len_bytes in boundary.saturating_sub(1)..=boundary + 1 {
            place.random_file(format!("random-{len_bytes}").as_bytes(), len_bytes)?;
        }
    }
    make_repetitive(place)?;
    place.sub(b"empty-dir")?.finish()?;
    let mut outer = place.sub(b"dirs-only")?;
    outer.sub(b"inner")?.finish()?;
    outer.finish()?;
    place.finish()
}

fn make_repetitive(place: &mut Place) -> io::Result<()> {
    let text = b"All work and no play makes a compressible file. ".repeat(30_000);
    place.file(b"text", &text)?;
    place.file(b"text-again", &text)?;
    // Zeros that were written are not a hole, and come back as zeros in any case.
    place.file(b"written-zeros", &vec![0; 300_000])?;
    Ok(())
}
