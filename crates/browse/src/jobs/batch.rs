//! Which of the ticked things are restored together: those of one folder, as each restore has threads and syncs of its own.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use holdall_engine::{InPlace, Selected, Selection};
use holdall_format::Shown;

use super::Wish;
use crate::names;

/// Things that are restored together.
pub(super) struct Batch {
    /// Absolute paths in the snapshot; never empty.
    pub(super) items: Vec<Vec<u8>>,
    /// What is restored: the only item, or the folder of all.
    pub(super) path: Vec<u8>,
    /// The folder to restore into.
    pub(super) target: PathBuf,
    /// What it is called in the end, for people; of several, their folder.
    pub(super) called: String,
    /// Whether the target was not typed in, so that another user may have put a link there.
    pub(super) is_guarded: bool,
    /// What gets its name once it is whole.
    pub(super) places: Vec<InPlace>,
}

/// One of those that may be restored together.
struct Item {
    path: Vec<u8>,
    is_dir: bool,
    /// Its place, if it is restored where it was.
    place: Option<InPlace>,
}

/// All that is wished; `day` is today's, for names.
pub(super) fn all_of(wish: &Wish, day: &str) -> Vec<Batch> {
    let (mut batches, mut together) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for (path, is_dir) in &wish.items {
        let (path, is_dir) = (path.clone(), *is_dir);
        let in_place = || InPlace::of(&path, is_dir, wish.overwrite, day);
        let place = wish.folder.is_none().then(in_place);
        let is_plain = place.as_ref().is_none_or(|place| place.is_plain(&path));
        let (above, item) = (folder_of(&path), Item { path, is_dir, place });
        match is_dir && !is_plain {
            true => batches.push(alone(item, wish.folder.as_deref())),
            false => together.entry((above, is_plain)).or_default().push(item),
        }
    }
    batches.extend(together.into_iter().flat_map(
        |((above, is_plain), mut items)| match items.len() {
            1 => items.pop().map(|item| alone(item, wish.folder.as_deref())),
            _ => Some(several(above, items, (!is_plain).then_some(day), wish.folder.as_deref())),
        },
    ));
    batches
}

fn alone(item: Item, folder: Option<&Path>) -> Batch {
    let Item { path, is_dir, place } = item;
    let own = OsStr::from_bytes(names::last(&path));
    let (target, name) = match (&place, folder.unwrap_or(Path::new("/"))) {
        (Some(place), _) => (place.target.clone(), place.name.clone()),
        (None, folder) if is_dir => (folder.join(own), folder.join(own)),
        (None, folder) => (folder.to_owned(), folder.join(own)),
    };
    let is_guarded = place.is_some() || is_dir;
    let (places, called) = (place.into_iter().collect(), shown(&name));
    Batch { items: vec![path.clone()], path, target, called, is_guarded, places }
}

/// Things of the folder `above`; where something is in the way of each, with the day for their names.
fn several(above: Vec<u8>, items: Vec<Item>, beside: Option<&str>, folder: Option<&Path>) -> Batch {
    let was = Path::new(OsStr::from_bytes(&above));
    let name = folder.unwrap_or(was).to_owned();
    let (items, places): (Vec<_>, Vec<_>) =
        items.into_iter().map(|item| (item.path, item.place)).unzip();
    let mut called = shown(&name);
    let mut places: Vec<_> = places.into_iter().flatten().filter(|_| beside.is_some()).collect();
    if let Some(day) = beside {
        InPlace::together(&mut places);
        called.push_str(&format!(", each as NAME.restored-{day}"));
    }
    let target = places.first().map_or(name, |place| place.target.clone());
    Batch { items, path: above, target, called, is_guarded: folder.is_none(), places }
}

fn shown(path: &Path) -> String {
    Shown(path.as_os_str().as_bytes()).to_string()
}

/// The folder that something is in.
fn folder_of(path: &[u8]) -> Vec<u8> {
    let end = path.len() - names::last(path).len();
    path.get(..end.saturating_sub(1).max(1)).unwrap_or(b"/").to_vec()
}

impl Batch {
    /// What of the folder is wanted; nothing where that is one thing.
    pub(super) fn selection(&self) -> Option<Selection> {
        if self.items.len() == 1 {
            return None;
        }
        let front = if self.path == b"/" { 1 } else { self.path.len() + 1 };
        let ticked: HashSet<Vec<u8>> = self.items.iter().cloned().collect();
        Some(Box::new(move |path, _| {
            let Some(below) = path.get(front..).filter(|below| !below.is_empty()) else {
                return Selected::Below;
            };
            let name = below.iter().position(|byte| *byte == b'/').unwrap_or(below.len());
            match ticked.contains(&path[..front + name]) {
                true => Selected::Yes,
                false => Selected::No,
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_what_was_ticked_and_all_below_it() {
        for (above, front) in [("/", "/"), ("/home/ada", "/home/ada/")] {
            let at = |name: &str| format!("{front}{name}").into_bytes();
            assert_eq!(folder_of(&at("a")), above.as_bytes());
            let batch = Batch {
                items: vec![at("a"), at("b")],
                path: above.into(),
                target: PathBuf::new(),
                called: String::new(),
                is_guarded: false,
                places: Vec::new(),
            };
            let select = batch.selection().unwrap();
            assert_eq!(select(above.as_bytes(), true), Selected::Below);
            for (name, expected) in [
                ("a", Selected::Yes),
                ("a/x/y", Selected::Yes),
                ("ab", Selected::No),
                ("c/a", Selected::No),
            ] {
                assert_eq!(select(&at(name), false), expected, "{name}");
            }
        }
    }
}
