//! The folders above the snapshots.
//!
//! ```text
//! snapshots/2026-11-30T07-45-12Z/   the files
//! machines/ada/2026-11-30T07-45-12Z -> ../../snapshots/2026-11-30T07-45-12Z
//! tags/weekly/...                   likewise
//! ids/1f3a5b7c9d                    likewise
//! latest                            the newest; machines and tags have one each
//! ```
//!
//! Each snapshot is one folder, and all else links to it: so the kernel keeps its files once, and who walks over everything
//! meets each once.

use std::collections::{BTreeMap, HashMap};

use holdall_format::{ObjectId, RecordHash};

use crate::inode::{Inode, SNAPSHOTS_MAX};
use crate::names::{Names, file_name, short_id};
use crate::taken::Taken;

/// The folder that is mounted.
const TOP: u64 = 1;
const SNAPSHOTS: &str = "snapshots";
const LATEST: &str = "latest";

/// The folders as they are at one time.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// What is in each, by its number.
    folders: HashMap<u64, BTreeMap<String, Inode>>,
    /// Where each leads, by its number.
    links: HashMap<u64, String>,
    listed: Vec<usize>,
    /// When the newest snapshot was taken, in nanoseconds since 1970 UTC.
    pub(crate) newest_ns: i64,
}

impl Catalogue {
    /// What is in the folder with that number.
    pub(crate) fn folder(&self, number: u64) -> Option<&BTreeMap<String, Inode>> {
        self.folders.get(&number)
    }

    /// Where the link with that number leads.
    pub(crate) fn link(&self, number: u64) -> Option<&str> {
        self.links.get(&number).map(|link| &link[..])
    }

    /// Whether the snapshot is still there.
    pub(crate) fn has(&self, snapshot: usize) -> bool {
        self.listed.binary_search(&snapshot).is_ok()
    }
}

/// A snapshot that was listed once.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Its folder.
    pub(crate) name: String,
    /// Its tree.
    pub(crate) root: ObjectId,
    /// When it was taken, in nanoseconds since 1970 UTC.
    pub(crate) taken_ns: i64,
}

/// What stays the same for as long as it is mounted: the numbers of folders and snapshots, and their names.
#[derive(Default)]
pub(crate) struct Numbers {
    above: HashMap<String, u64>,
    places: HashMap<RecordHash, usize>,
    names: Names,
    pub(crate) snapshots: Vec<Known>,
}

impl Numbers {
    /// The folders for these snapshots.
    pub(crate) fn catalogue(&mut self, snapshots: &[Taken<'_>]) -> Catalogue {
        self.names.add(snapshots);
        let mut draft = Draft { numbers: self, catalogue: Catalogue::default() };
        for folder in [SNAPSHOTS, "machines", "tags", "ids"] {
            draft.folder(folder);
        }
        let mut by_age: Vec<_> = snapshots.iter().collect();
        by_age.sort_by_key(|one| one.taken_ns);
        let mut listed: Vec<_> = by_age.iter().filter_map(|one| draft.add(one)).collect();
        listed.sort_unstable();
        let newest_ns = by_age.last().map_or(0, |one| one.taken_ns);
        Catalogue { listed, newest_ns, ..draft.catalogue }
    }

    /// The number of a folder or a link, by its path.
    fn above(&mut self, path: &str) -> u64 {
        match path {
            "" => TOP,
            path => {
                let next = TOP + 1 + self.above.len() as u64;
                *self.above.entry(path.to_owned()).or_insert(next)
            }
        }
    }

    fn place(&mut self, one: &Taken<'_>) -> Option<usize> {
        if let Some(place) = self.places.get(&one.id) {
            return Some(*place);
        }
        let place = Some(self.snapshots.len()).filter(|place| *place < SNAPSHOTS_MAX)?;
        let (name, taken_ns) = (self.names.of(one).to_owned(), one.taken_ns);
        self.snapshots.push(Known { name, root: one.root, taken_ns });
        self.places.insert(one.id, place);
        Some(place)
    }
}

/// Folders that are being made.
struct Draft<'n> {
    numbers: &'n mut Numbers,
    catalogue: Catalogue,
}

impl Draft<'_> {
    /// Adds a snapshot, younger than those before.
    fn add(&mut self, one: &Taken<'_>) -> Option<usize> {
        let place = self.numbers.place(one)?;
        let name = self.numbers.names.of(one).to_owned();
        self.put(SNAPSHOTS, &name, Inode::In { snapshot: place, number: 0 });
        self.link("ids", &short_id(one), &name);
        self.link("", LATEST, &name);
        let machine = format!("machines/{}", file_name(one.host));
        let tags = one.tags.iter().map(|tag| format!("tags/{}", file_name(tag)));
        for folder in std::iter::once(machine).chain(tags) {
            self.link(&folder, &name, &name);
            self.link(&folder, LATEST, &name);
        }
        Some(place)
    }

    /// Puts a link to the snapshot with that name into a folder.
    fn link(&mut self, folder: &str, name: &str, snapshot: &str) {
        let up = "../".repeat(folder.split('/').filter(|part| !part.is_empty()).count());
        let number = self.numbers.above(&format!("{folder}/{name}"));
        self.catalogue.links.insert(number, format!("{up}{SNAPSHOTS}/{snapshot}"));
        self.put(folder, name, Inode::Above(number));
    }

    fn put(&mut self, folder: &str, name: &str, inode: Inode) {
        self.folder(folder).insert(name.to_owned(), inode);
    }

    /// What is in a folder, which is made with those above it if it is new.
    fn folder(&mut self, path: &str) -> &mut BTreeMap<String, Inode> {
        let number = self.numbers.above(path);
        if !self.catalogue.folders.contains_key(&number) && !path.is_empty() {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            self.put(above, name, Inode::Above(number));
        }
        self.catalogue.folders.entry(number).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken<'a>(id: u8, host: &'a str, second: i64, tags: &'a [String]) -> Taken<'a> {
        let (id, root) = (RecordHash::from_bytes([id; 32]), ObjectId::from_bytes([id; 32]));
        Taken { id, root, host, tags, taken_ns: second * 1_000_000_000 }
    }

    /// What is in a folder, by names, and where links lead.
    fn shown(catalogue: &Catalogue, path: &str) -> Vec<(String, String)> {
        let mut folder = catalogue.folder(TOP).unwrap();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Some(Inode::Above(number)) = folder.get(name) else { panic!("no {name}") };
            folder = catalogue.folder(*number).unwrap();
        }
        let shown = |(name, inode): (&String, &Inode)| {
            let Inode::Above(number) = inode else { return (name.clone(), "a snapshot".into()) };
            (name.clone(), catalogue.link(*number).unwrap_or("a folder").to_owned())
        };
        folder.iter().map(shown).collect()
    }

    fn names(catalogue: &Catalogue, path: &str) -> Vec<String> {
        shown(catalogue, path).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn everything_leads_to_the_snapshot_by_its_time_and_the_newest_is_latest() {
        let tags = ["weekly".to_owned(), "..".to_owned()];
        let mut numbers = Numbers::default();
        let all = [taken(2, "ada", 60, &[]), taken(1, "ada", 0, &tags)];
        let catalogue = numbers.catalogue(&all);
        let [old, new] = ["1970-01-01T00-00-00Z", "1970-01-01T00-01-00Z"];
        let link = |name: &str, up: &str, to: &str| (name.into(), format!("{up}snapshots/{to}"));
        assert_eq!(names(&catalogue, "snapshots"), [old, new]);
        assert_eq!(shown(&catalogue, "")[1], link("latest", "", new));
        assert_eq!(
            shown(&catalogue, "machines/ada"),
            [link(old, "../../", old), link(new, "../../", new), link("latest", "../../", new)]
        );
        assert_eq!(names(&catalogue, "tags"), ["%2E%2E", "weekly"]);
        assert_eq!(shown(&catalogue, "tags/weekly")[1], link("latest", "../../", old));
        assert_eq!(shown(&catalogue, "ids")[0], link("0101010101", "../", old));
        assert_eq!(catalogue.newest_ns, 60_000_000_000);
    }

    #[test]
    fn several_hosts_and_one_second_give_names_that_are_not_mixed_up() {
        let mut numbers = Numbers::default();
        let all = [taken(1, "a", 0, &[]), taken(2, "b", 0, &[]), taken(3, "b", 0, &[])];
        let time = "1970-01-01T00-00-00Z";
        let expected = [format!("{time}_0303030303"), format!("{time}_a"), format!("{time}_b")];
        assert_eq!(names(&numbers.catalogue(&all), "snapshots"), expected);
    }

    #[test]
    fn names_and_inodes_stay_when_others_come_and_go() {
        let mut numbers = Numbers::default();
        let (one, two) = (taken(1, "a", 0, &[]), taken(2, "b", 5, &[]));
        let before = numbers.catalogue(&[one]);
        let inodes = |catalogue: &Catalogue| {
            let Some(Inode::Above(folder)) = catalogue.folder(TOP)?.get("snapshots") else {
                return None;
            };
            catalogue.folder(*folder)?.get("1970-01-01T00-00-00Z").copied()
        };
        let after = numbers.catalogue(&[two, one]);
        assert_eq!(inodes(&before), inodes(&after));
        assert_eq!(names(&after, "machines"), ["a", "b"]);
        let gone = numbers.catalogue(&[two]);
        assert_eq!((inodes(&gone), gone.has(0), gone.has(1)), (None, false, true));
        assert_eq!(names(&gone, "machines"), ["b"]);
        assert_eq!(inodes(&numbers.catalogue(&[one])), inodes(&before));
        assert_eq!(names(&numbers.catalogue(&[]), "snapshots"), [""; 0]);
    }
}
