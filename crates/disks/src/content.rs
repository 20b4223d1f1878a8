//! What is on a disk already: signatures of file systems, volumes and partition tables, and anything that is not zero.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::error::DiskError;
use crate::program::{LOOK, WIPEFS};
use crate::read::short;

/// Both ends are looked at in full for so many bytes: that is where tables, labels and headers are.
pub(crate) const END_BYTES: u64 = 1 << 20;
/// Between them it is looked at in so many places, of so many bytes each: a disk whose table was removed may still be full.
const PLACES: u64 = 64;
const PLACE_BYTES: u64 = 64 << 10;
/// The table for programs that do not know GPT, which a disk with GPT has beside it.
const PROTECTIVE: &str = "PMBR";
/// More signatures than any device has; what follows is left out.
const MAX_SIGNATURES: usize = 64;

/// Something that a program would find on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// What it belongs to, such as `ext4`, `gpt` or `linux_raid_member`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The label, if it has one.
    #[serde(default)]
    pub label: Option<String>,
}

impl Signature {
    /// `ext4 "photos"`.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.label {
            Some(label) => format!("{} \"{label}\"", self.kind),
            None => self.kind.clone(),
        }
    }
}

/// What is on a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// What has a signature: on the whole disk without a name before it, on a partition with the partition's.
    pub found: Vec<(Option<String>, Signature)>,
    /// Whether anything was found that is not zero, or could not be read.
    pub is_written: bool,
}

impl Content {
    /// Whether nothing is there, as far as was looked: both ends, and places between them.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && !self.is_written
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        let one = |(device, signature): &(Option<String>, Signature)| match device {
            Some(device) => format!("{} on {device}", signature.words()),
            None => signature.words(),
        };
        match (&self.found[..], self.is_written) {
            ([], false) => "nothing".to_owned(),
            ([], true) => "something that is not known".to_owned(),
            (found, _) => found.iter().map(one).collect::<Vec<_>>().join(", "),
        }
    }
}

/// The signatures on a device, each kind and label once.
///
/// # Errors
/// Those of running `wipefs`, and what it says.
pub(crate) fn signatures(device: &str) -> Result<Vec<Signature>, DiskError> {
    let ended = WIPEFS.run(&["--no-act", "--json", &format!("/dev/{device}")], "", Some(LOOK))?;
    match ended.status.success() {
        true => Ok(parsed(&ended.stdout)),
        false => Err(WIPEFS.failure(&ended)),
    }
}

/// Reads what `wipefs --json` prints. Untrusted: labels are what somebody wrote on the disk.
fn parsed(json: &str) -> Vec<Signature> {
    #[derive(Default, Deserialize)]
    struct Listed {
        signatures: Vec<Signature>,
    }
    let listed: Listed = serde_json::from_str(json).unwrap_or_default();
    let mut found: Vec<Signature> = Vec::new();
    for signature in listed.signatures.into_iter().take(MAX_SIGNATURES) {
        let kind = short(&signature.kind).unwrap_or_default();
        let label = signature.label.as_deref().and_then(short);
        let signature = Signature { kind, label };
        if signature.kind != PROTECTIVE && !found.contains(&signature) {
            found.push(signature);
        }
    }
    found
}

/// Whether anything but zeros is found at both ends of a device of `size_bytes`, or in the places between.
///
/// # Errors
/// What the system says.
pub(crate) fn is_written(disk: &File, size_bytes: u64) -> io::Result<bool> {
    let end = END_BYTES.min(size_bytes);
    let ends = [(0, end), (size_bytes - end, end)];
    let step = size_bytes / PLACES;
    let place = |number| (number * step, PLACE_BYTES.min(size_bytes - number * step));
    for (at, length) in ends.into_iter().chain((1..PLACES).map(place)) {
        if !is_zero(disk, at, length)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_zero(disk: &File, at: u64, length: u64) -> io::Result<bool> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    disk.read_exact_at(&mut bytes, at)?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_and_label_is_told_once() {
        let json = r#"{"signatures": [
            {"device":"sdb","offset":"0x200","type":"gpt","uuid":null,"label":null},
            {"device":"sdb","offset":"0x3f","type":"gpt","uuid":null,"label":null},
            {"device":"sdb","offset":"0x1fe","type":"PMBR","uuid":null,"label":null},
            {"device":"sdb","offset":"0x438","type":"ext4","uuid":"1","label":"photos"}]}"#;
        let words: Vec<_> = parsed(json).iter().map(Signature::words).collect();
        assert_eq!(words, ["gpt", "ext4 \"photos\""]);
        assert_eq!(parsed(""), []);
    }

    #[test]
    fn a_byte_at_either_end_or_in_one_of_the_places_is_found() {
        const SIZE: u64 = 64 << 20;
        let empty = tempfile::tempfile().unwrap();
        empty.set_len(SIZE).unwrap();
        assert!(!is_written(&empty, SIZE).unwrap());
        for at in [0, END_BYTES - 1, SIZE / PLACES * 33, SIZE - END_BYTES, SIZE - 1] {
            let disk = tempfile::tempfile().unwrap();
            disk.set_len(SIZE).unwrap();
            disk.write_all_at(&[1], at).unwrap();
            assert!(is_written(&disk, SIZE).unwrap(), "{at}");
        }
        for small in [0, 1, 512, 70_000] {
            let disk = tempfile::tempfile().unwrap();
            disk.set_len(small).unwrap();
            assert!(!is_written(&disk, small).unwrap(), "{small}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_disk_has_the_reader_takes_no_more_than_it_should(text in ".{0,400}") {
            let label = serde_json::to_string(&text.repeat(9)).unwrap();
            let all = format!(r#"{{"signatures": [{{"type":"ext4","label":{label}}}]}}"#);
            for json in [&text, &all] {
                for signature in parsed(json) {
                    prop_assert!(signature.words().len() < 4 * 600);
                }
            }
        }
    }
}
