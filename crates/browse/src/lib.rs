//! The client's own pages: what is in the snapshots, shown in a browser on this computer and nowhere else.
//!
//! Unlike the server's pages these have keys, and restore files. So they are on loopback alone, and who opens them has
//! shown a token that was printed on the terminal.
//!
//! ```text
//! server -> guard (Host, Origin) -> door (token, cookie) -> router -> pages
//!                                                                     |-> shared (one viewer, the list of snapshots)
//!                                                                     '-> stream (files, piece by piece)
//! ```
//!
//! `dav` shows the same snapshots to programs, beside the door: its password is the token.
//! `place` names what is in a snapshot; `names` writes paths of any bytes into addresses, forms and headers. Whatever asks the repository runs on plain threads;
//! what is sent is read piece by piece, and waits for who takes it.

#[cfg(feature = "web")]
mod dav;
#[cfg(feature = "web")]
mod door;
mod error;
#[cfg(feature = "web")]
mod guard;
#[cfg(feature = "web")]
mod jobs;
#[cfg(feature = "web")]
mod names;
#[cfg(not(feature = "web"))]
mod no_web;
mod options;
#[cfg(feature = "web")]
mod pages;
#[cfg(feature = "web")]
mod peers;
#[cfg(feature = "web")]
mod place;
#[cfg(feature = "web")]
mod problem;
#[cfg(feature = "web")]
mod server;
#[cfg(feature = "web")]
mod shared;
#[cfg(feature = "web")]
mod silence;
#[cfg(feature = "web")]
mod stream;
#[cfg(feature = "web")]
mod times;
#[cfg(feature = "web")]
mod wrong;

pub use error::BrowseError;
#[cfg(not(feature = "web"))]
pub use no_web::Browse;
pub use options::BrowseOptions;
#[cfg(feature = "web")]
pub use server::Browse;
