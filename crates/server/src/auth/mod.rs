//! Who the server is, and who may do what: `identity` has the server's keys and certificates, `rights` the one check
//! that each request passes. Which key is whose is `accounts`'.

pub(crate) mod identity;
pub(crate) mod rights;
