//! The content of a file: the blobs of a list, one after the other.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use rustic_core::repofile::BlobType;
use rustic_core::{BlobId, DataId};

use crate::indexed::{Indexed, reason};

/// Reads blobs, each when it is needed: at most one is in memory.
pub(crate) struct Content {
    repository: Arc<Indexed>,
    blobs: std::vec::IntoIter<DataId>,
    blob: Bytes,
}

impl Content {
    /// The content of that list.
    pub(crate) fn new(repository: Arc<Indexed>, blobs: Vec<DataId>) -> Self {
        Self { repository, blobs: blobs.into_iter(), blob: Bytes::new() }
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.blob.is_empty() {
            let Some(id) = self.blobs.next() else { return Ok(0) };
            let blob = self.repository.get_blob_cached(&BlobId::from(id), BlobType::Data);
            self.blob = blob.map_err(|error| io::Error::other(reason(&error)))?;
        }
        let len_bytes = self.blob.len().min(buffer.len());
        self.blob.copy_to_slice(&mut buffer[..len_bytes]);
        Ok(len_bytes)
    }
}
