//! Comparing two trees: a merge-join that skips nodes which both have.
//!
//! Equal nodes have equal ids, so what did not change is never fetched; because an edit moves no
//! boundary, that is nearly everything.

use crate::cursor::{Cursor, Place};
use crate::entry::Entry;
use crate::error::TreeError;
use crate::node::NodeSource;
use crate::path::PathKey;
use holdall_format::ObjectId;
use std::cmp::Ordering;

/// A path whose entries differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path.
    pub path: PathKey,
    /// Its entry in the first tree; nothing if it was added.
    pub before: Option<Entry>,
    /// Its entry in the second tree; nothing if it was removed.
    pub after: Option<Entry>,
}

/// What to do next with two cursors.
enum Step {
    EnterFirst,
    EnterSecond,
    SkipBoth,
    Compare(Ordering),
    End,
}

/// Hands over all paths whose entries differ in two trees, ascending.
///
/// # Errors
/// As [`Cursor::peek`].
pub fn diff<A, B, E>(
    before: (A, ObjectId),
    after: (B, ObjectId),
    mut on_change: impl FnMut(Change),
) -> Result<(), TreeError<E>>
where
    A: NodeSource<Error = E>,
    B: NodeSource<Error = E>,
{
    diff_below(before, after, &PathKey::root(), |change| {
        on_change(change);
        Ok(())
    })
}

/// The same for `top` and what lies below it alone. Ends at the first error of `on_change`.
///
/// # Errors
/// As [`Cursor::peek`]; [`TreeError::Source`] with the error of `on_change`.
pub fn diff_below<A, B, E>(
    before: (A, ObjectId),
    after: (B, ObjectId),
    top: &PathKey,
    mut on_change: impl FnMut(Change) -> Result<(), E>,
) -> Result<(), TreeError<E>>
where
    A: NodeSource<Error = E>,
    B: NodeSource<Error = E>,
{
    let mut first = Cursor::new(before.0, before.1);
    let mut second = Cursor::new(after.0, after.1);
    if !top.is_root() {
        first.seek(top)?;
        second.seek(top)?;
    }
    let end = top.after_subtree();
    let end = end.as_deref();
    loop {
        match next_step(first.settle()?.up_to(end), second.settle()?.up_to(end)) {
            Step::EnterFirst => first.enter()?,
            Step::EnterSecond => second.enter()?,
            Step::SkipBoth => {
                first.skip_node();
                second.skip_node();
            }
            Step::Compare(order) => {
                let before = if order.is_le() { first.next()? } else { None };
                let after = if order.is_ge() { second.next()? } else { None };
                let (path, before, after) = match (before, after) {
                    (Some((path, before)), after) => (path, Some(before), after.map(|(_, e)| e)),
                    (None, Some((path, after))) => (path, None, Some(after)),
                    (None, None) => continue,
                };
                if before != after {
                    on_change(Change { path, before, after }).map_err(TreeError::Source)?;
                }
            }
            Step::End => return Ok(()),
        }
    }
}

impl Place<'_> {
    /// The same place, or the end where it is not below those key bytes.
    fn up_to(self, end: Option<&[u8]>) -> Self {
        let (Self::Entry(path) | Self::Node { first: path, .. }) = &self else { return self };
        if end.is_some_and(|end| path.as_bytes() >= end) { Self::End } else { self }
    }
}

/// What is lower comes first; of two nodes at the same path, the higher is entered, until both have
/// the same level and can be equal.
fn next_step(first: Place<'_>, second: Place<'_>) -> Step {
    match (first, second) {
        (Place::Node { id: a, .. }, Place::Node { id: b, .. }) if a == b => Step::SkipBoth,
        (
            Place::Node { first: a, level: a_level, .. },
            Place::Node { first: b, level: b_level, .. },
        ) => match a.cmp(b).then(b_level.cmp(&a_level)) {
            Ordering::Less | Ordering::Equal => Step::EnterFirst,
            Ordering::Greater => Step::EnterSecond,
        },
        (Place::Node { first: a, .. }, Place::Entry(b)) if a > b => {
            Step::Compare(Ordering::Greater)
        }
        (Place::Entry(a), Place::Node { first: b, .. }) if a < b => Step::Compare(Ordering::Less),
        (Place::Node { .. }, _) => Step::EnterFirst,
        (_, Place::Node { .. }) => Step::EnterSecond,
        (Place::Entry(a), Place::Entry(b)) => Step::Compare(a.cmp(b)),
        (Place::Entry(_), Place::End) => Step::Compare(Ordering::Less),
        (Place::End, Place::Entry(_)) => Step::Compare(Ordering::Greater),
        (Place::End, Place::End) => Step::End,
    }
}
