//! A plain copy, to compare a backup with: file by file, as people copy, and the same bytes as one
//! stream, which is the fastest that one can hope for.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use holdall_meter::LatencyCount;
use holdall_sys::{disk, raw_file};

use super::Sample;
use super::read::each_file;
use crate::{LabError, Measurement, Stop};

const PIECE_BYTES: usize = 1 << 20;

/// Where a copy goes.
pub trait CopyTarget {
    /// A new file begins, in the folder of that number.
    ///
    /// # Errors
    /// What keeps it from beginning.
    fn begin(&mut self, folder: usize, name: &[u8]) -> io::Result<()>;

    /// More of the file that began.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn write(&mut self, piece: &[u8]) -> io::Result<()>;

    /// The file is complete.
    ///
    /// # Errors
    /// What keeps it from being written.
    fn end(&mut self) -> io::Result<()>;

    /// Everything is complete.
    ///
    /// # Errors
    /// What keeps it from being so.
    fn finish(&mut self) -> io::Result<()>;

    /// Whether what is finished is durable.
    fn is_durable(&self) -> bool;
}

/// Copies a sample, one file after the other; the time includes what `finish` takes.
///
/// # Errors
/// [`LabError::Interrupted`], or what the target says.
pub fn measure_copy(
    operation: &str,
    sample: &Sample,
    target: &mut dyn CopyTarget,
    stop: &Stop,
) -> Result<Measurement, LabError> {
    let failed = |source| LabError::Io { what: operation.to_owned(), source };
    let (mut latency, mut files, mut bytes) = (LatencyCount::default(), 0_u64, 0_u64);
    let (mut piece, mut broken) = (vec![0; PIECE_BYTES], None);
    let begun = Instant::now();
    for (folder, batch) in sample.batches.iter().enumerate() {
        // A folder that cannot be read any more is left out.
        let _ = each_file(batch, |mut file, name| {
            if stop.is_wished() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let begun = Instant::now();
            let copied = copy_file(&mut file, (folder, name), target, &mut piece, stop);
            latency.add(begun.elapsed());
            files += 1;
            copied.map(|copied| bytes += copied).map_err(|error| {
                broken = Some(error);
                io::ErrorKind::Interrupted.into()
            })
        });
        stop.check()?;
        if let Some(error) = broken.take() {
            return Err(failed(error));
        }
    }
    target.finish().map_err(failed)?;
    let seconds = begun.elapsed().as_secs_f64().max(1e-9);
    Ok(Measurement {
        jobs: Some(1),
        direct: Some(false),
        end_fsync: Some(target.is_durable()),
        bytes_per_second: Some(bytes as f64 / seconds),
        operations_per_second: Some(files as f64 / seconds),
        latency_ns: latency.latency(),
        ..Measurement::new(operation, seconds)
    })
}

fn copy_file(
    file: &mut File,
    (folder, name): (usize, &[u8]),
    target: &mut dyn CopyTarget,
    piece: &mut [u8],
    stop: &Stop,
) -> io::Result<u64> {
    target.begin(folder, name)?;
    let mut copied = 0;
    // What cannot be read ends the file, not the copy.
    while let Ok(bytes @ 1..) = file.read(piece) {
        target.write(&piece[..bytes])?;
        copied += bytes as u64;
        if stop.is_wished() {
            break;
        }
    }
    target.end()?;
    Ok(copied)
}

/// A folder that gets a file for each file. All of it is made durable at the end, but on a share, whose
/// server would have to be told of each file: who copies a tree there does not do that.
pub struct FileByFile {
    folder: PathBuf,
    is_share: bool,
    file: Option<File>,
    made: Option<usize>,
}

impl FileByFile {
    /// A new folder.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(folder: &Path) -> io::Result<Self> {
        fs::create_dir(folder)?;
        let is_share = disk::file_system(folder).is_ok_and(disk::is_share);
        Ok(Self { folder: folder.to_owned(), is_share, file: None, made: None })
    }
}

impl CopyTarget for FileByFile {
    fn begin(&mut self, folder: usize, name: &[u8]) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        let path = self.folder.join(folder.to_string());
        if self.made != Some(folder) {
            fs::create_dir(&path)?;
            self.made = Some(folder);
        }
        self.file = Some(File::create_new(path.join(std::ffi::OsStr::from_bytes(name)))?);
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(piece))
    }

    fn end(&mut self) -> io::Result<()> {
        self.file = None;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.is_share {
            return Ok(());
        }
        raw_file::sync_file_system(&File::open(&self.folder)?)
    }

    fn is_durable(&self) -> bool {
        !self.is_share
    }
}

/// One file that gets all bytes, made durable at the end.
pub struct OneStream {
    file: File,
}

impl OneStream {
    /// A new file.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)? })
    }
}

impl CopyTarget for OneStream {
    fn begin(&mut self, _folder: usize, _name: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn is_durable(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, walk};
    use super::*;
    use std::time::Duration;

    #[test]
    fn both_copies_have_all_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        fs::create_dir_all(source.join("below")).unwrap();
        for (name, bytes) in [("one", 3_000_000_usize), ("two", 10), ("below/one", 5)] {
            fs::write(source.join(name), vec![b'x'; bytes]).unwrap();
        }
        let stop = Stop::default();
        let (walked, _) = walk(&source, Duration::from_secs(60), &stop).unwrap();
        let sample = Sample::of(&walked, Limits { items: 10, bytes: 1 << 30 });
        let (files, stream) = (dir.path().join("files"), dir.path().join("stream"));
        let row =
            measure_copy("files", &sample, &mut FileByFile::make(&files).unwrap(), &stop).unwrap();
        assert_eq!(
            (row.operations_per_second.unwrap() * row.duration_seconds).round() as u64,
            3,
            "{row:?}"
        );
        let length = |path: PathBuf| fs::metadata(path).unwrap().len();
        assert_eq!(length(files.join("0/one")), 3_000_000);
        assert_eq!([length(files.join("0/two")), length(files.join("1/one"))], [10, 5]);
        measure_copy("stream", &sample, &mut OneStream::make(&stream).unwrap(), &stop).unwrap();
        assert_eq!(length(stream), 3_000_015);
    }
}
