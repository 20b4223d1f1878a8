//! Trees: what a snapshot is, as nodes that two snapshots can share.
//!
//! A snapshot is one sequence of entries sorted by path, cut into nodes where a keyed hash of the
//! path says. So the same files give the same nodes however they came about, an edit changes only
//! the nodes above it, and comparing two snapshots costs what differs. Content is cut into chunks
//! in the same spirit.
//!
//! This crate knows names, metadata and content, so only clients link it. It does no I/O, reads no
//! clock and spawns nothing: nodes come from a [`NodeSource`] and go to a [`NodeSink`], whatever
//! those are. It does not know blocks, packs or how anything is sealed. Every decoder treats its
//! input as hostile although it was sealed: whoever shares a repository has its key.
//!
//! ```
//! use holdall_crypto::{KeyRing, RepositoryKeys};
//! use holdall_format::ObjectId;
//! use holdall_tree::{BuiltNode, Cursor, Entry, EntryKind, Node, NodeSource, PathKey, TreeBuilder};
//! use std::collections::HashMap;
//! use std::sync::Arc;
//!
//! #[derive(Debug, thiserror::Error)]
//! #[error("a node is missing")]
//! struct Missing;
//!
//! struct Nodes(HashMap<ObjectId, Arc<Node>>);
//!
//! impl NodeSource for Nodes {
//!     type Error = Missing;
//!
//!     fn node(&mut self, id: &ObjectId) -> Result<Arc<Node>, Missing> {
//!         self.0.get(id).cloned().ok_or(Missing)
//!     }
//! }
//!
//! let keys = RepositoryKeys::derive(&KeyRing::from_master([1; 32]));
//! let mut nodes = Nodes(HashMap::new());
//! let mut sink = |node: BuiltNode| {
//!     nodes.0.insert(node.id, Arc::new(node.into_node()));
//!     Ok::<(), Missing>(())
//! };
//! let mut builder = TreeBuilder::new(keys.ids().clone(), *keys.boundary_key(), 5);
//! for path in ["/", "/etc", "/etc/hosts"] {
//!     let path = PathKey::from_absolute(path.as_bytes())?;
//!     builder.push(&path, &Entry::empty(EntryKind::Directory), &mut sink)?;
//! }
//! let root = builder.finish(&mut sink)?;
//!
//! let mut cursor = Cursor::new(nodes, root.id);
//! cursor.seek(&PathKey::from_absolute(b"/etc")?)?;
//! let (path, _) = cursor.next()?.expect("it was put there");
//! assert_eq!(path.to_absolute(), b"/etc");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod attributes;
mod boundary;
mod builder;
mod chunker;
mod codec;
mod content;
mod content_reader;
mod cursor;
mod diff;
mod entry;
mod error;
mod extents;
mod fingerprint;
mod interior;
mod list;
mod node;
mod path;

pub use attributes::{
    ATTRIBUTE_NAME_MAX_BYTES, ATTRIBUTE_VALUE_MAX_BYTES, ATTRIBUTES_MAX, Attributes,
};
pub use builder::{Root, TreeBuilder, WholeLeaf};
pub use chunker::{CHUNK_AVERAGE_BYTES, CHUNK_MAX_BYTES, CHUNK_MIN_BYTES, Chunker};
pub use content::{CONTENT_MAX_CHUNKS, ChunkRef, Content};
pub use content_reader::ContentReader;
pub use cursor::{Cursor, LeafAhead, LeafBetween, lookup};
pub use diff::{Change, diff, diff_below};
pub use entry::{
    ATTRIBUTES_INLINE_MAX_BYTES, CONTENT_INLINE_MAX_BYTES, EXTENTS_INLINE_MAX_BYTES, Entry,
    EntryKind, OWNER_NAME_MAX_BYTES, Time,
};
pub use error::{BuildError, TreeError};
pub use extents::Extents;
pub use fingerprint::{CHECK_BYTES, Facts, Fingerprint, Fingerprints, KnownLeaf, LeafRecord};
pub use list::ContentBuilder;
pub use node::{BuiltNode, LIST_MAX_LEVEL, Node, NodeKind, NodeSink, NodeSource, TREE_MAX_LEVEL};
pub use path::{COMPONENT_MAX_BYTES, PATH_MAX_BYTES, PathError, PathKey};
