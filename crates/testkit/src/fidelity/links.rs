//! Links: symbolic ones to anywhere and nowhere, and hard ones of every kind of file.

use std::io;

use holdall_sys::{DeviceNumber, FileKind};

use super::place::Place;

/// The longest target that Linux takes, in bytes.
const MAX_TARGET_BYTES: usize = 4095;

pub(super) fn make(place: &mut Place) -> io::Result<()> {
    let mut symbolic = place.sub(b"symbolic")?;
    make_symbolic(&mut symbolic)?;
    let mut hard = place.sub(b"hard")?;
    make_hard(&mut hard)?;
    place.finish()
}

fn make_symbolic(place: &mut Place) -> io::Result<()> {
    place.file(b"file", b"content")?;
    place.symlink(b"relative", b"file")?;
    place.symlink(b"dangling", b"no/such/file")?;
    place.symlink(b"absolute", b"/usr/bin/env")?;
    place.symlink(b"absolute-dangling", b"/no/such/file")?;
    place.symlink(b"up", b"../../..")?;
    place.symlink(b"loop", b"loop")?;
    place.symlink(b"dot", b".")?;
    place.symlink(b"invalid-utf8", b"\xff\xfe\n")?;
    place.symlink(b"long", &b"long/".repeat(MAX_TARGET_BYTES / 5))?;
    longest(place)?;
    place.finish()
}

/// The longest target that this file system takes: some stop at less than the kernel's limit.
fn longest(place: &mut Place) -> io::Result<()> {
    let mut len_bytes = MAX_TARGET_BYTES;
    while place.symlink(b"longest", &vec![b'l'; len_bytes]).is_err() {
        len_bytes -= 1;
        if len_bytes < 255 {
            return Err(io::Error::other("the file system takes no long link"));
        }
    }
    Ok(())
}

fn make_hard(place: &mut Place) -> io::Result<()> {
    let mut first = place.sub(b"first")?;
    let mut second = place.sub(b"second")?;
    first.random_file(b"file", 10_000)?;
    first.link(b"file", &first, b"file-beside")?;
    first.link(b"file", &second, b"file-elsewhere")?;
    first.link(b"file", place, b"file-above")?;
    // The same content, but a file of its own.
    first.file(b"empty", b"")?;
    first.link(b"empty", &second, b"empty")?;
    second.file(b"empty-alone", b"")?;
    first.symlink(b"symlink", b"file")?;
    first.link(b"symlink", &second, b"symlink")?;
    first.special(b"fifo", FileKind::Fifo, DeviceNumber::default())?;
    first.link(b"fifo", &second, b"fifo")?;
    make_many(&mut second)?;
    first.finish()?;
    second.finish()?;
    place.finish()
}

/// A file with very many names.
fn make_many(place: &mut Place) -> io::Result<()> {
    place.random_file(b"many-0", 1_000)?;
    for number in 1..100 {
        place.link(b"many-0", place, format!("many-{number}").as_bytes())?;
    }
    Ok(())
}
