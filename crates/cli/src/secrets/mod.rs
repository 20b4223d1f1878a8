//! Where passwords and keys of the user's own come from.

pub(crate) mod own_key;
pub(crate) mod password;
pub(crate) mod password_text;
