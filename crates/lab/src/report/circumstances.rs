//! What figures depend on, as names and values.

use serde::{Deserialize, Serialize};

/// Something that was found out, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is about, such as `kernel`.
    pub name: String,
    /// What it is.
    pub value: String,
}

impl Fact {
    /// A fact of that name.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}
