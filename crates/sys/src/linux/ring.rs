//! Several reads and writes of one file under way at once, by `io_uring`.
//!
//! The kernel reads and writes memory on its own while a request is under way. That is why a [`Ring`]
//! owns its buffers and lends one only while no request uses it, and waits for all of them before it
//! lets go of the memory.

#![allow(unsafe_code, reason = "the kernel is handed addresses")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::aligned::AlignedBuffer;

/// A queue of requests to one file, each with a buffer of its own.
pub struct Ring {
    ring: IoUring,
    /// Whether it takes requests; one that belongs to a thread does when that thread says so.
    is_enabled: bool,
    file: File,
    slots: Vec<Slot>,
    under_way: usize,
}

struct Slot {
    buffer: AlignedBuffer,
    is_under_way: bool,
}

/// Which way the bytes of a request go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the file to the buffer.
    Read,
    /// From the buffer to the file.
    Write,
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completion {
    /// Which slot is free again.
    pub slot: usize,
    /// How many bytes were moved, or what the system said.
    pub moved_bytes: io::Result<usize>,
}

impl Ring {
    /// A ring of `depth` slots, each with a buffer of `buffer_bytes`. The thread that starts its first
    /// request is the one that uses it from then on.
    ///
    /// # Errors
    ///
    /// What the system says: `ENOSYS` or `EPERM` where there is no `io_uring`, or where it is
    /// forbidden.
    pub fn new(file: File, depth: usize, buffer_bytes: usize) -> io::Result<Self> {
        let entries = u32::try_from(depth.max(1)).map_err(|_| io::ErrorKind::InvalidInput)?;
        u32::try_from(buffer_bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        let (ring, is_enabled) = new_ring(entries.next_power_of_two())?;
        let slot = |_| Slot { buffer: AlignedBuffer::new(buffer_bytes), is_under_way: false };
        Ok(Self { ring, is_enabled, file, slots: (0..depth).map(slot).collect(), under_way: 0 })
    }

    /// The buffer of a slot; `None` while a request uses it, or if there is no such slot.
    pub fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        let slot = self.slots.get_mut(slot).filter(|slot| !slot.is_under_way)?;
        Some(slot.buffer.bytes_mut())
    }

    /// How many requests are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Starts a request that moves a slot's whole buffer, and hands it to the kernel at once: handed
    /// over together, neighbours would become one larger request.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a slot that is not there or under way; what the system says.
    pub fn start(&mut self, slot: usize, way: Way, offset: u64) -> io::Result<()> {
        if !self.is_enabled {
            self.ring.submitter().register_enable_rings()?;
            self.is_enabled = true;
        }
        let fd = types::Fd(self.file.as_raw_fd());
        let user_data = slot as u64;
        let free = self.slots.get_mut(slot).filter(|slot| !slot.is_under_way);
        let slot = free.ok_or(io::ErrorKind::InvalidInput)?;
        let buffer = slot.buffer.bytes_mut();
        // `new` made sure that it fits.
        let len = buffer.len() as u32;
        let entry = match way {
            Way::Read => opcode::Read::new(fd, buffer.as_mut_ptr(), len).offset(offset).build(),
            Way::Write => opcode::Write::new(fd, buffer.as_ptr(), len).offset(offset).build(),
        };
        // SAFETY: the buffer lives in `self.slots`, is lent to nobody while `is_under_way`, and is
        // given back only after the request's completion was seen (see `Drop`). So does the file.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(user_data)) };
        pushed.map_err(|_| io::ErrorKind::InvalidInput)?;
        slot.is_under_way = true;
        self.under_way += 1;
        match self.ring.submit() {
            // What the kernel has no room for now it takes with the next one, or in `wait`.
            Err(error) if !is_later(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits until at least one request has ended; returns at once if none is under way.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait(&mut self) -> io::Result<()> {
        if self.under_way == 0 {
            return Ok(());
        }
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A request that has ended, if one has and was not told yet.
    pub fn completion(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let slot = usize::try_from(entry.user_data()).ok()?;
        self.slots.get_mut(slot)?.is_under_way = false;
        self.under_way -= 1;
        let moved_bytes = match usize::try_from(entry.result()) {
            Ok(bytes) => Ok(bytes),
            Err(_) => Err(io::Error::from_raw_os_error(-entry.result())),
        };
        Some(Completion { slot, moved_bytes })
    }
}

/// A ring; and whether it takes requests from whoever comes.
///
/// What ends is told where its thread asks for it, and interrupts nobody: on a fast disk the interruptions take
/// as long as the requests. Kernels before 6.1 know no such rings.
fn new_ring(entries: u32) -> io::Result<(IoUring, bool)> {
    let of_one_thread = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_r_disabled()
        .build(entries);
    match of_one_thread {
        Ok(ring) => Ok((ring, false)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Ok((IoUring::new(entries)?, true))
        }
        Err(error) => Err(error),
    }
}

fn is_later(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, ResourceBusy, WouldBlock};
    matches!(error.kind(), WouldBlock | ResourceBusy | Interrupted)
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way > 0 {
            if self.wait().is_err() {
                // The kernel may still use the memory, so nobody else ever gets it.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
            while self.completion().is_some() {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn ring(depth: usize, buffer_bytes: usize) -> Option<(Ring, File)> {
        let file = tempfile::tempfile().unwrap();
        let ring = Ring::new(file.try_clone().unwrap(), depth, buffer_bytes);
        // A container may forbid it.
        ring.ok().map(|ring| (ring, file))
    }

    #[test]
    fn what_many_requests_wrote_is_in_the_file_and_they_read_it_again() {
        let Some((mut ring, file)) = ring(4, 100) else { return };
        for slot in 0..4 {
            ring.buffer(slot).unwrap().fill(slot as u8 + 1);
            ring.start(slot, Way::Write, slot as u64 * 100).unwrap();
            assert!(ring.buffer(slot).is_none(), "it is lent to the kernel");
            ring.start(slot, Way::Write, 0).unwrap_err();
        }
        let mut ended = Vec::new();
        while ring.under_way() > 0 {
            ring.wait().unwrap();
            while let Some(done) = ring.completion() {
                assert_eq!(done.moved_bytes.unwrap(), 100);
                ended.push(done.slot);
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3]);
        let mut content = [0; 400];
        file.read_exact_at(&mut content, 0).unwrap();
        assert!(content.chunks(100).zip(1..).all(|(part, byte)| part == [byte; 100]));
        ring.start(0, Way::Read, 300).unwrap();
        ring.wait().unwrap();
        assert_eq!(ring.completion().unwrap().moved_bytes.unwrap(), 100);
        assert_eq!(ring.buffer(0).unwrap()[..], [4; 100]);
    }

    #[test]
    fn dropping_it_waits_for_what_is_under_way_and_errors_are_told() {
        let Some((mut ring, file)) = ring(2, 50) else { return };
        ring.buffer(1).unwrap().fill(9);
        ring.start(1, Way::Write, 0).unwrap();
        drop(ring);
        assert_eq!(file.metadata().unwrap().len(), 50);
        let folder = File::open("/").unwrap();
        let mut ring = Ring::new(folder, 1, 50).unwrap();
        ring.start(0, Way::Read, 0).unwrap();
        ring.wait().unwrap();
        ring.completion().unwrap().moved_bytes.unwrap_err();
        assert!(ring.completion().is_none() && ring.buffer(7).is_none());
        ring.start(7, Way::Read, 0).unwrap_err();
    }
}
