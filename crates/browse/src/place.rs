//! Places in snapshots: their addresses, and how pages show them.

use axum::http::Uri;
use holdall_engine::Snapshot;
use maud::{Markup, html};

use crate::names;
use crate::problem::Problem;

/// A path in a snapshot, as the address of a page names it: `/at/ID/home/ada`.
#[derive(Clone)]
pub(crate) struct Place {
    /// The snapshot's id.
    pub(crate) id: String,
    /// The absolute path, any bytes.
    pub(crate) path: Vec<u8>,
}

impl Place {
    /// The place behind the first part of an address.
    ///
    /// # Errors
    /// 404 if there is none.
    pub(crate) fn of(uri: &Uri) -> Result<Self, Problem> {
        let mut parts = uri.path().splitn(4, '/').skip(2);
        let (id, path) = (parts.next(), parts.next().unwrap_or_default());
        let id = id.ok_or_else(|| Problem::not_found("There is no such page."))?;
        let path = [b"/", &names::decode(path)[..]].concat();
        let path = match path.strip_suffix(b"/") {
            Some(front) if !front.is_empty() => front.to_vec(),
            _ => path,
        };
        Ok(Self { id: id.to_owned(), path })
    }
}

/// The address of a path in a snapshot, on the pages that begin with `front`.
pub(crate) fn address(front: &str, snapshot: &Snapshot, path: &[u8]) -> String {
    address_of(front, &snapshot.id.to_string(), path)
}

/// The same by the snapshot's id.
pub(crate) fn address_of(front: &str, id: &str, path: &[u8]) -> String {
    format!("/{front}/{id}{}", names::encode(path))
}

/// A name out of a backup.
pub(crate) fn shown(name: &[u8]) -> Markup {
    html! { bdi { (holdall_format::Shown(name).to_string()) } }
}
