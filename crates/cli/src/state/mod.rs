//! What this computer remembers between two runs, in files of the state folder that only their owner may read.
//!
//! `private_file` writes and reads them. `identity` and `pairing` say which machine this is and where it is paired,
//! `receipts` what was acknowledged, `kept_parts` the last good keys and configuration, and `emptied` which sources
//! became empty.

pub(crate) mod emptied;
pub(crate) mod hex;
pub(crate) mod identity;
pub(crate) mod kept_parts;
pub(crate) mod pairing;
pub(crate) mod private_file;
pub(crate) mod receipts;
