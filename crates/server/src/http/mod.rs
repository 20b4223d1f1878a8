//! HTTP over TLS: from a connection to the answer of each of its requests.
//!
//! ```text
//! connection -> dispatch -> repository_request -> put, records, scrub -> bounds::work -> stores
//!     |            |-> pairing, short_code   '-> read_body -> body
//! idle_socket      '-> lab
//! ```
//!
//! Browsers, which have no key, are shown the pages of `web` first. `idle_socket` tells when nothing moves on a connection. `dispatch` checks rights and hands a request on.
//! `repository_request` has an arm for each verb. `read_body` takes a body within its limit and once there is memory for
//! it; `body` has the bytes themselves, both ways; `respond` makes responses.

mod body;
mod connection;
mod dispatch;
mod idle_socket;
mod lab;
mod pairing;
mod put;
mod read_body;
mod records;
mod repository_request;
mod respond;
mod scrub;
mod short_code;

pub(crate) use connection::{Serving, serve};
pub(crate) use short_code::watch_left;
