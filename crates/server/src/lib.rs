//! The appliance: a holdall server, which keeps repositories for machines and never has their keys.
//!
//! A server is one data folder and one port. It lets machines in by invite, knows them by the key
//! of their TLS connection, and hands their requests to the `repository` crate after one check of
//! their rights. It cannot read what it keeps: nothing that this crate links reaches the crates
//! that hold keys or names, and no log line has content.
//!
//! ```text
//! http (TLS, bodies) -> auth (rights) -> bounds::work (threads) -> stores (repositories)
//!                          |                                         |
//!                       accounts (machines, invites, rules) <- admin (commands) <- admin_listener (socket)
//! ```
//!
//! `activity` has a line of the log for each snapshot and reading, `state` is what all requests share, `server` starts and ends it all, `measure` is for `holdall lab`, `web` has the pages for browsers, `web_sessions` who is signed in to them, `short_codes` the code that is open, and `clock_trust`
//! says whether anything may be deleted for its age. `lab` measures the server's own disk, `acme` gets a certificate for browsers. `bandwidth` is what an administrator lets pass in a second.
//!
//! What requests may cost is bounded before they are read: connections, requests of each machine,
//! bytes in memory, time. What is over a limit waits, or is told to come back.

mod accounts;
#[cfg(feature = "web")]
mod acme;
mod activity;
mod addresses;
pub mod admin;
mod admin_listener;
mod auth;
mod bandwidth;
mod bounds;
mod clock_trust;
mod data_folder;
mod error;
mod http;
mod jobs;
mod lab;
mod measure;
#[cfg(feature = "web")]
mod notices;
mod recent;
mod server;
mod short_codes;
mod state;
mod stores;
#[cfg(feature = "web")]
mod web;
#[cfg(not(feature = "web"))]
#[path = "no_web.rs"]
mod web;
#[cfg(feature = "web")]
mod web_sessions;

pub use accounts::{Invitation, InviteRequest};
pub use addresses::is_host_and_port;
pub use auth::acme::{Acme, LETS_ENCRYPT};
pub use auth::own_certificate::OwnCertificate;
pub use auth::rights::Right;
pub use bounds::limits::Limits;
pub use error::ServerError;
pub use server::{Server, ServerOptions};

/// Takes the server's log, a line at a time without its end. No line has content, names of files or
/// secrets.
pub type LogSink = std::sync::Arc<dyn Fn(&str) + Send + Sync>;
