//! A tree that has everything a restore must bring back: each kind of file, each kind of metadata,
//! and the extremes of each that a file system takes.
//!
//! What only root may make (owners, devices, `trusted.` attributes) is left out for others, and
//! said so. Nothing in it depends on the time or on the machine, so two trees are alike.

mod attributes;
mod contents;
mod links;
mod metadata;
mod names;
mod place;
mod sparse;
mod special;

use std::io;
use std::path::Path;

use place::Place;

/// How large the extremes of the tree are.
#[derive(Debug, Clone)]
pub struct FidelitySizes {
    /// How many files the huge directory has.
    pub huge_dir_entries: usize,
    /// How long the deepest path is at least, in bytes, from the tree's root.
    pub deep_path_bytes: usize,
    /// How long the longest hole is, in bytes.
    pub hole_bytes: u64,
    /// How long the large file with some data is, in bytes.
    pub large_sparse_bytes: u64,
    /// Around each of these lengths in bytes lie three files: one less, the same, one more.
    pub boundaries_bytes: Vec<usize>,
}

/// Something that the user who ran the test may not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What it is, in a few words.
    pub what: &'static str,
}

impl FidelitySizes {
    /// Everything, at sizes that take a fraction of a second.
    #[must_use]
    pub fn small() -> Self {
        Self {
            huge_dir_entries: 500,
            deep_path_bytes: 6_000,
            hole_bytes: 3 << 40,
            large_sparse_bytes: 6 << 30,
            boundaries_bytes: vec![512, 4096, 64 << 10, 512 << 10],
        }
    }

    /// Everything at full size: 200,000 entries in one directory, files around every boundary.
    #[must_use]
    pub fn full() -> Self {
        Self {
            huge_dir_entries: 200_000,
            boundaries_bytes: vec![
                128,
                512,
                4096,
                64 << 10,
                128 << 10,
                256 << 10,
                512 << 10,
                1 << 20,
                2 << 20,
                4 << 20,
                8 << 20,
            ],
            ..Self::small()
        }
    }
}

/// Makes the tree in `dir`, which must exist and should be empty.
///
/// Returns what was left out for want of rights: nothing, for root.
///
/// # Errors
///
/// What the file system says; what was made stays.
pub fn fidelity_tree(dir: &Path, sizes: &FidelitySizes) -> io::Result<Vec<LeftOut>> {
    let mut root = Place::open(dir)?;
    contents::make(&mut root.sub(b"contents")?, &sizes.boundaries_bytes)?;
    sparse::make(&mut root.sub(b"sparse")?, sizes.hole_bytes, sizes.large_sparse_bytes)?;
    names::make_odd(&mut root.sub(b"names")?)?;
    names::make_deep(&mut root.sub(b"deep")?, sizes.deep_path_bytes)?;
    names::make_huge(&mut root.sub(b"huge")?, sizes.huge_dir_entries)?;
    links::make(&mut root.sub(b"links")?)?;
    let mut left_out = Vec::new();
    left_out.extend(metadata::make(&mut root.sub(b"metadata")?)?);
    left_out.extend(attributes::make(&mut root.sub(b"attributes")?)?);
    left_out.extend(special::make(&mut root.sub(b"special")?)?);
    root.finish()?;
    Ok(left_out)
}

#[cfg(test)]
mod tests;
