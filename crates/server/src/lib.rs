//! The appliance: a holdall server, which keeps repositories for machines and never has their keys.
//!
//! A server is one data folder and one port. It lets machines in by invite, knows them by the key
//! of their TLS connection, and hands their requests to the `repository` crate after one check of
//! their rights. It can not read what it keeps: nothing that this crate links reaches the crates
//! that hold keys or names, and no log line has content.
//!
//! ```text
//! connection (TLS, limits) -> handler (rights, bodies) -> work (threads) -> stores (repositories)
//!                                        accounts (machines, invites) <- admin (socket)
//! ```
//!
//! What requests may cost is bounded before they are read: connections, requests of each machine,
//! bytes in memory, time. What is over a limit waits, or is told to come back.

mod accounts;
mod addresses;
pub mod admin;
mod admin_listener;
mod body;
mod buffers;
mod connection;
mod crowd;
mod data_folder;
mod error;
mod failures;
mod handler;
mod identity;
mod limits;
mod measuring;
mod pressure;
mod put;
mod records;
mod refused_pairings;
mod rights;
mod scrub;
mod server;
mod source;
mod state;
mod stores;
mod taking;
mod watch;
mod watched;
mod work;

pub use accounts::{Invitation, InviteRequest};
pub use addresses::is_host_and_port;
pub use error::ServerError;
pub use limits::Limits;
pub use rights::Right;
pub use server::{Server, ServerOptions};

/// Takes the server's log, a line at a time without its end. No line has content, names of files or
/// secrets.
pub type LogSink = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
