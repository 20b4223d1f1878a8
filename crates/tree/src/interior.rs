//! Interior nodes: which paths lie in which child.
//!
//! ```text
//! | per child: path bytes shared with the child before varint | suffix length varint | suffix
//! |            | entries varint | file bytes varint |                               and one id
//! ```

use crate::node::{Body, NODE_MAX_PATH_BYTES};
use crate::path::{PATH_MAX_BYTES, PathKey};
use holdall_format::{FormatError, ObjectId};

/// What an interior node says of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) first: PathKey,
    pub(crate) id: ObjectId,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

/// Takes the next path of a node.
///
/// Untrusted: `path_bytes` bounds what a node's paths take when written in full.
pub(crate) fn take_path(
    body: &mut Body<'_>,
    first: bool,
    path: &mut PathKey,
    path_bytes: &mut usize,
) -> Result<(), FormatError> {
    let shared = body.items.varlen("shared path", PATH_MAX_BYTES)?;
    let suffix_len = body.items.varlen("path length", PATH_MAX_BYTES)?;
    let suffix = body.items.bytes("path", suffix_len)?;
    path.step_to(first, shared, suffix).map_err(|reason| body.items.invalid("path", reason))?;
    *path_bytes = path_bytes.saturating_add(path.as_bytes().len());
    if *path_bytes > NODE_MAX_PATH_BYTES {
        return Err(body.items.invalid("path", "all paths together are too long"));
    }
    Ok(())
}

/// Reads the children of an interior node.
pub(crate) fn decode_children(mut body: Body<'_>) -> Result<Vec<Child>, FormatError> {
    let mut children = Vec::new();
    let mut path = PathKey::root();
    let mut path_bytes = 0;
    while !body.items.remaining().is_empty() {
        take_path(&mut body, children.is_empty(), &mut path, &mut path_bytes)?;
        let items = body.items.varint("entries")?;
        let bytes = body.items.varint("file bytes")?;
        children.push(Child { first: path.clone(), id: body.ids.next()?, items, bytes });
    }
    if children.is_empty() {
        return Err(body.items.invalid("children", "there are none"));
    }
    body.finish()?;
    Ok(children)
}
