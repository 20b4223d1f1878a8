//! A plain copy to a server that forgets it: a request for each file, or all bytes as one stream.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use holdall_lab::path::CopyTarget;
use holdall_protocol::MeasuredServer;
use holdall_protocol::wire::Frames;

/// The longest request: what is longer goes in several.
const PIECE_BYTES: usize = 8 << 20;

fn send(server: &MeasuredServer, bytes: Vec<u8>) -> io::Result<()> {
    server.take(&Frames::plain(Bytes::from(bytes))).map_err(io::Error::other)
}

/// A request for each file, one after the other.
pub(super) struct SentFiles {
    server: Arc<MeasuredServer>,
    waiting: Vec<u8>,
}

impl SentFiles {
    /// To that server.
    pub(super) fn to(server: Arc<MeasuredServer>) -> Self {
        Self { server, waiting: Vec::new() }
    }
}

impl CopyTarget for SentFiles {
    fn begin(&mut self, _folder: usize, _name: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(piece);
        let is_full = self.waiting.len() >= PIECE_BYTES;
        if is_full { send(&self.server, std::mem::take(&mut self.waiting)) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        send(&self.server, std::mem::take(&mut self.waiting))
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_durable(&self) -> bool {
        false
    }
}

/// All bytes in large requests, each sent while the next is read.
pub(super) struct SentStream {
    waiting: Vec<u8>,
    /// Gone once all is handed over.
    to_sender: Option<SyncSender<Vec<u8>>>,
    sender: Option<JoinHandle<io::Result<()>>>,
}

impl SentStream {
    /// To that server.
    pub(super) fn to(server: Arc<MeasuredServer>) -> Self {
        let (to_sender, pieces) = sync_channel::<Vec<u8>>(1);
        let send_all = move || pieces.into_iter().try_for_each(|piece| send(&server, piece));
        let sender = Some(std::thread::spawn(send_all));
        Self { waiting: Vec::new(), to_sender: Some(to_sender), sender }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.waiting);
        let sent = self.to_sender.as_ref().map(|to_sender| to_sender.send(piece));
        // Nobody takes it any more: sending failed.
        if matches!(sent, Some(Err(_))) { self.sent() } else { Ok(()) }
    }

    /// Waits for the last piece; whether all went well.
    fn sent(&mut self) -> io::Result<()> {
        self.to_sender = None;
        let ended = self.sender.take().map(JoinHandle::join);
        ended.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| Err(io::Error::other("sending broke off")))
    }
}

impl CopyTarget for SentStream {
    fn begin(&mut self, _folder: usize, _name: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(piece);
        if self.waiting.len() >= PIECE_BYTES { self.hand_over() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.hand_over()?;
        }
        self.sent()
    }

    fn is_durable(&self) -> bool {
        false
    }
}
