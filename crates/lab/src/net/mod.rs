//! What the path to another computer can carry: throughput, round trips, and what they go over.
//!
//! A backup that is slow over a network leaves open whether the link, the disk behind it or the
//! backup itself is slow. This module moves bytes that cost nothing to make, from memory or from
//! and to scratch files, and says how fast they went. Both ends are here: [`Listener`] answers on a
//! computer without a server, and [`Direct`] calls it. Whatever else can carry a [`Job`], such as
//! the connection of a paired server, is measured in the same way, through [`Far`].
//!
//! A listener is used by whoever has its token and by nobody else, writes only unnamed files in the
//! folder that it was started with, and everything it does for one connection ends by itself.
//! `docs/lab.md` has the protocol byte by byte.

mod bond;
#[cfg(feature = "decoders")]
pub mod decoders;
mod direct;
mod end;
mod far;
mod link;
mod listener;
mod measure;
mod message;
mod paths;
mod pump;
mod retransmits;
mod samples;
#[cfg(test)]
mod tests;
mod token;

pub use bond::Bond;
pub use direct::Direct;
pub use end::{End, ScratchFile, ScratchFolder, Sink, Source, Wait};
pub use far::{Carrier, Direction, Far, Job, Moved};
pub use link::{Link, interface_to};
pub use listener::{Listener, ListenerOptions};
pub use measure::{NetPlan, NetReport, NetRow, measure};
pub use message::{MAX_BUFFER_BYTES, MAX_SECONDS, MAX_STREAMS, MIN_BUFFER_BYTES};
pub use paths::{PathShare, Paths};
pub use token::Token;
