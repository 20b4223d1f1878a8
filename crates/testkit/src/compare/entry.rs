//! Comparing what two entries of one path have beside their content.

use std::io;

use holdall_sys::xattr::Xattr;
use holdall_sys::{Dir, FileKind, Name, Stat};

use super::{Comparison, Field};

/// How much of a long value is shown.
const SHOWN_BYTES: usize = 80;

impl Comparison<'_> {
    pub(super) fn metadata(&mut self, left: &Stat, right: &Stat) {
        // A link's own mode means nothing and cannot be set.
        if left.kind != FileKind::Symlink && left.mode != right.mode {
            self.note(Field::Mode, format!("{:04o}", left.mode), format!("{:04o}", right.mode));
        }
        if self.options.owners {
            self.same(Field::User, left.uid, right.uid);
            self.same(Field::Group, left.gid, right.gid);
        }
        if left.kind == FileKind::File {
            self.same(Field::Size, left.size, right.size);
        }
        self.same(Field::Mtime, left.mtime, right.mtime);
    }

    pub(super) fn xattrs(&mut self, left: io::Result<Vec<Xattr>>, right: io::Result<Vec<Xattr>>) {
        if !self.options.xattrs {
            return;
        }
        let Some((left, right)) = self.both(left, right) else { return };
        for attribute in left.iter().filter(|attribute| !right.contains(attribute)) {
            let field = Field::Xattr(attribute.name.clone());
            let other = right.iter().find(|other| other.name == attribute.name);
            self.note(field, shown(Some(attribute)), shown(other));
        }
        for extra in &right {
            if left.iter().all(|attribute| attribute.name != extra.name) {
                self.note(Field::Xattr(extra.name.clone()), shown(None), shown(Some(extra)));
            }
        }
    }

    pub(super) fn targets(&mut self, left: &Dir, right: &Dir, name: Name<'_>) {
        let targets = self.both(left.read_link(name), right.read_link(name));
        if let Some((left, right)) = targets
            && left != right
        {
            self.note(Field::Target, left.escape_ascii(), right.escape_ascii());
        }
    }
}

fn shown(attribute: Option<&Xattr>) -> String {
    let Some(Xattr { value, .. }) = attribute else { return "nothing".to_owned() };
    let start = value.get(..SHOWN_BYTES).unwrap_or(value);
    format!("{} bytes: {}", value.len(), start.escape_ascii())
}
