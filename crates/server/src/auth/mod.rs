//! Who the server is, and who may do what: `identity` has the server's keys and certificates, `own_certificate` one for browsers that
//! somebody brought, `rights` the one check
//! that each request of a machine passes, `scope` what a token may, and `actor` who has something done. Which key is whose is `accounts`'.

pub(crate) mod acme;
pub(crate) mod actor;
pub(crate) mod identity;
pub(crate) mod own_certificate;
pub(crate) mod rights;
pub(crate) mod scope;
