//! The files of a repository in a directory, only to be read.
//!
//! ```text
//! config  keys/ID  snapshots/ID  index/ID  data/ID[0..2]/ID, in old repositories data/ID
//! ```

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustic_core::{
    BytesList, ErrorKind, FileType, Id, ReadBackend, RusticError, RusticResult, WriteBackend,
};

/// A repository's directory.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// The directory at that path, whatever is there.
    pub(crate) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn folder(&self, kind: FileType) -> PathBuf {
        self.0.join(kind.dirname())
    }

    fn open(&self, kind: FileType, id: &Id) -> RusticResult<(PathBuf, File)> {
        let name = id.to_hex();
        let path = match kind {
            FileType::Config => self.0.join("config"),
            FileType::Pack => self.folder(kind).join(&name[..2]).join(&*name),
            _ => self.folder(kind).join(&*name),
        };
        let opened = match File::open(&path) {
            Err(error) if kind == FileType::Pack && error.kind() == io::ErrorKind::NotFound => {
                File::open(self.folder(kind).join(&*name)).map_err(|_| error)
            }
            opened => opened,
        };
        match opened {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(failed(&path, error)),
        }
    }
}

fn failed(path: &Path, error: io::Error) -> Box<RusticError> {
    RusticError::with_source(ErrorKind::Backend, path.display().to_string(), error)
}

fn read_only() -> Box<RusticError> {
    RusticError::new(ErrorKind::Unsupported, "a repository that is imported is only read")
}

impl ReadBackend for Directory {
    fn location(&self) -> String {
        self.0.display().to_string()
    }

    fn list_with_size(&self, kind: FileType) -> RusticResult<Vec<(Id, u32)>> {
        if kind == FileType::Config {
            let there = self.0.join("config").exists();
            return Ok(if there { vec![(Id::default(), 0)] } else { Vec::new() });
        }
        let mut listed = Vec::new();
        let mut folders = vec![self.folder(kind)];
        while let Some(folder) = folders.pop() {
            let read = |error| failed(&folder, error);
            for entry in fs::read_dir(&folder).map_err(read)? {
                let entry = entry.map_err(read)?;
                let about = fs::metadata(entry.path()).map_err(read)?;
                if about.is_dir() && kind == FileType::Pack {
                    folders.push(entry.path());
                } else if about.is_file()
                    && let Some(id) = entry.file_name().to_str().and_then(|id| id.parse().ok())
                {
                    listed.push((id, u32::try_from(about.len()).unwrap_or(u32::MAX)));
                }
            }
        }
        Ok(listed)
    }

    fn read_full(&self, kind: FileType, id: &Id) -> RusticResult<Bytes> {
        let (path, mut file) = self.open(kind, id)?;
        let mut bytes = Vec::new();
        match io::Read::read_to_end(&mut file, &mut bytes) {
            Ok(_) => Ok(bytes.into()),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn read_partial(
        &self,
        kind: FileType,
        id: &Id,
        _: bool,
        offset: u32,
        length: u32,
    ) -> RusticResult<Bytes> {
        let (path, file) = self.open(kind, id)?;
        let mut bytes = vec![0; length as usize];
        match file.read_exact_at(&mut bytes, u64::from(offset)) {
            Ok(()) => Ok(bytes.into()),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn warmup_path(&self, _: FileType, _: &Id) -> String {
        String::new()
    }
}

impl WriteBackend for Directory {
    fn write_bytes(&self, _: FileType, _: &Id, _: bool, _: BytesList) -> RusticResult<()> {
        Err(read_only())
    }

    fn remove(&self, _: FileType, _: &Id, _: bool) -> RusticResult<()> {
        Err(read_only())
    }
}
