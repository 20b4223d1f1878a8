//! The nodes of a folder: one that `rustic_core` does not understand keeps none of the others back.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustic_core::repofile::{BlobType, Node, Tree};
use rustic_core::{BlobId, TreeId};
use serde::Deserialize;
use serde_json::Value;

use crate::indexed::{Indexed, reason};

/// restic's names of types that an entry can have.
const TYPES: [&str; 7] = ["file", "dir", "symlink", "fifo", "socket", "dev", "chardev"];
/// Times that a node has.
const TIMES: [&str; 3] = ["mtime", "atime", "ctime"];
/// The last days that restic writes, some of which `rustic_core` does not take, and the last time that it does.
const LAST_DAYS: &str = "9999-12-3";
const LAST_TIME: &str = "9999-12-30T22:00:00Z";

/// What is in a folder.
pub(crate) struct Nodes {
    /// Each with its name, in the order of restic's tree.
    pub(crate) nodes: Vec<(Vec<u8>, Node)>,
    /// Names of those that are not understood, and why.
    pub(crate) left_out: Vec<(Vec<u8>, String)>,
}

impl Nodes {
    /// Reads a folder.
    pub(crate) fn read(repository: &Indexed, id: &TreeId) -> Result<Self, String> {
        let blob = repository.get_blob_cached(&BlobId::from(*id), BlobType::Tree);
        Self::decode(&blob.map_err(|error| reason(&error))?)
    }

    fn decode(blob: &[u8]) -> Result<Self, String> {
        match serde_json::from_slice::<Tree>(blob) {
            Ok(tree) => {
                let nodes = tree.nodes.into_iter().map(|node| (name(&node), node));
                Ok(Self { nodes: nodes.collect(), left_out: Vec::new() })
            }
            Err(error) => Self::one_by_one(blob).ok_or_else(|| error.to_string()),
        }
    }

    fn one_by_one(blob: &[u8]) -> Option<Self> {
        let mut tree: Value = serde_json::from_slice(blob).ok()?;
        let Value::Array(all) = tree.get_mut("nodes")?.take() else { return None };
        let mut nodes = Self { nodes: Vec::new(), left_out: Vec::new() };
        for mut described in all {
            clamp_times(&mut described);
            match Node::deserialize(&described) {
                Ok(node) => nodes.nodes.push((name(&node), node)),
                Err(error) => {
                    nodes.left_out.push((name_of(&described), why_not(&described, &error)));
                }
            }
        }
        Some(nodes)
    }
}

/// restic escapes names.
fn name(node: &Node) -> Vec<u8> {
    OsStr::as_bytes(&node.name()).to_vec()
}

fn name_of(described: &Value) -> Vec<u8> {
    let escaped = described["name"].as_str().unwrap_or_default().to_owned();
    name(&Node { name: escaped, ..Node::default() })
}

/// Puts times in the place of those that are less than two days later and not taken.
fn clamp_times(described: &mut Value) {
    for time in TIMES {
        if let Some(time) = described.get_mut(time)
            && time.as_str().is_some_and(|time| time.starts_with(LAST_DAYS))
        {
            *time = LAST_TIME.into();
        }
    }
}

fn why_not(described: &Value, error: &serde_json::Error) -> String {
    match described["type"].as_str() {
        Some("symlink") if !described["linktarget"].is_string() => {
            "restic has no target of it".to_owned()
        }
        Some(kind) if !TYPES.contains(&kind) => {
            format!("restic did not know what it was (type {kind:?})")
        }
        _ => format!("what restic says of it is not understood: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_keeps_no_other_back() {
        let tree = r#"{"nodes":[
            {"name":"a\\xff","type":"irregular"},
            {"name":"b","type":"file","mtime":"9999-12-31T23:59:59.999999999+01:00","content":null},
            {"name":"c","type":"symlink","linktarget":null},
            {"name":"d","type":"dir","uid":-1},
            7
        ]}"#;
        let read = Nodes::decode(tree.as_bytes()).ok().unwrap();
        let names: Vec<_> = read.nodes.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, [b"b"]);
        let left: Vec<_> = read.left_out.iter().map(|(name, _)| &**name).collect();
        assert_eq!(left, [&b"a\xff"[..], b"c", b"d", b""]);
    }

    #[test]
    fn what_is_no_tree_is_damage() {
        for blob in ["", "7", "{}", r#"{"nodes":7}"#] {
            assert!(Nodes::decode(blob.as_bytes()).is_err(), "{blob}");
        }
        assert!(Nodes::decode(br#"{"nodes":null}"#).is_ok_and(|read| read.nodes.is_empty()));
    }
}
