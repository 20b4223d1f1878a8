//! The client's end of the wire, and the only place where this crate waits.
//!
//! A caller's thread that asks for something takes a connection out of the pool, drives it with its
//! own small runtime until the answer is there, and puts it back: no other thread is woken on the
//! way, and a blocked caller is all the back-pressure there is. Every stream is a connection of its
//! own, kept for the next request.
//!
//! What is lost is asked again: all requests are idempotent, so a server that restarts or moves to
//! another of its addresses costs time, not the run.

mod address;
mod body;
mod call;
mod dial;
mod lab;
mod options;
mod pace;
mod repository;
mod shown;
mod socket;
mod stream;
mod turns;
mod yielding;

pub use address::ServerAddress;
pub(crate) use call::{Caller, Weight};
pub use lab::MeasuredServer;
pub use options::ClientOptions;
pub use pace::{LimitWaits, RateLimit, ServerLimit, WireMeter};
pub use repository::HttpRepository;
pub use shown::shown_identity;
