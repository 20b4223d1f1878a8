//! Paths as bytes: names need not be text.

/// The path of an item in a directory.
pub(crate) fn child(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if folder == b"/" { b"" } else { b"/" };
    [folder, slash, name].concat()
}
