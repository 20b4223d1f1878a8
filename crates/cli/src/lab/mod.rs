//! What the commands of the lab share: kept reports, the server at the far end, and what was measured before.

pub(crate) mod lab_report;
pub(crate) mod lab_server;
pub(crate) mod remembered;
