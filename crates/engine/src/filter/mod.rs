//! What of a source is left out: `patterns` are those of gitignore, `exclude` puts them together with the other rules.

pub(crate) mod exclude;
pub(crate) mod patterns;
