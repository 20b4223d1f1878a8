//! Whether what was read came from a disk.

use std::path::Path;

use holdall_sys::{disk, process};
use serde::{Deserialize, Serialize};

use crate::storage_stack::DirectAccess;

/// Where the bytes of a read came from, by what the system counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cache {
    /// The page cache was gone around.
    #[serde(rename = "direct")]
    Direct,
    /// Most of it came from the disk.
    #[serde(rename = "cold")]
    Cold,
    /// A part of it came from the disk.
    #[serde(rename = "partly warm")]
    PartlyWarm,
    /// Hardly anything came from the disk.
    #[serde(rename = "warm")]
    Warm,
    /// The system does not count for this file system, or for anyone.
    #[serde(rename = "unknown")]
    Unknown,
}

impl Cache {
    /// As a table calls it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Cold => "cold",
            Self::PartlyWarm => "partly warm",
            Self::Warm => "warm",
            Self::Unknown => "unknown",
        }
    }

    /// Of a read that was to go around the page cache, on a file system that took that.
    pub(crate) fn of_direct_read(access: DirectAccess) -> Self {
        match access {
            DirectAccess::Around => Self::Direct,
            DirectAccess::MayCache => Self::Unknown,
            DirectAccess::InMemory => Self::Warm,
        }
    }

    /// Of `bytes` that were read in `folder` through the cache, since this process had made the system read
    /// `before` from disks. A share's bytes come over the network, and are not counted.
    pub(crate) fn of_read_in(folder: &Path, bytes: u64, before: Option<u64>) -> Self {
        let read = process::bytes_read_from_disks().zip(before).map(|(now, then)| now - then);
        let is_share = disk::file_system(folder).is_ok_and(disk::is_share);
        Self::of(bytes, read.filter(|&read| read > 0 || !is_share))
    }

    /// Of a read through the cache of `asked` bytes, of which `from_disk` were counted as read from a
    /// disk. What the system reads ahead may make that more than was asked.
    pub(crate) fn of(asked: u64, from_disk: Option<u64>) -> Self {
        match from_disk {
            None => Self::Unknown,
            Some(read) if read <= asked / 20 => Self::Warm,
            Some(read) if read >= asked / 5 * 4 => Self::Cold,
            Some(_) => Self::PartlyWarm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_is_what_came_from_the_disk() {
        let of = |from_disk| Cache::of(1000, from_disk);
        assert_eq!([of(None), of(Some(50))], [Cache::Unknown, Cache::Warm]);
        assert_eq!([of(Some(500)), of(Some(800))], [Cache::PartlyWarm, Cache::Cold]);
        assert_eq!(of(Some(1200)), Cache::Cold);
    }
}
