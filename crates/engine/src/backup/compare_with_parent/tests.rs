//! When a path counts as unchanged, and what is kept of it then.

use super::*;

#[test]
fn content_is_read_where_nothing_tells_that_another_file_was_moved_there() {
    let folder = tempfile::tempdir().unwrap();
    let stat_of = |name: &str| {
        let dir = holdall_sys::Dir::open_absolute(folder.path().to_str().unwrap().as_bytes());
        dir.unwrap().stat(holdall_sys::Name::new(name.as_bytes()).unwrap()).unwrap()
    };
    std::fs::write(folder.path().join("file"), b"content").unwrap();
    std::fs::write(folder.path().join("empty"), b"").unwrap();
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
    let [all, no_inodes, nothing] = [(true, true), (false, true), (false, false)]
        .map(|(inodes, change_times)| Lasting { inodes, change_times, sizes: true });
    let no_sizes = Lasting { sizes: false, ..all };
    for (name, is_read) in [("file", true), ("link", true), ("empty", false), ("dir", false)] {
        let stat = stat_of(name);
        let facts = facts(&stat);
        let (mode, uid, gid, inode) = (facts.mode, facts.uid, facts.gid, facts.inode);
        let (mtime, ctime, size) = (facts.mtime, facts.ctime, facts.size);
        let same = Entry { mode, uid, gid, mtime, ctime, size, ..Entry::empty(facts.kind) };
        assert!(seems_unchanged(&Entry { inode, ..same.clone() }, &stat, all), "{name}");
        assert!(!seems_unchanged(&same, &stat, all), "{name}");
        let known = Entry { inode, ..same.clone() };
        assert_eq!(seems_unchanged(&known, &stat, no_sizes), name != "empty", "{name}");
        assert!(seems_unchanged(&same, &stat, no_inodes), "{name}");
        assert_eq!(seems_unchanged(&same, &stat, nothing), !is_read, "{name}");
    }
}

#[test]
fn what_is_kept_joins_the_hard_links_that_are_read_now() {
    let before = Entry { hardlink: Some([1; 16]), size: 5, ..Entry::empty(EntryKind::File) };
    let kept = kept_entry(&before, Some([2; 16]), None);
    assert_eq!(kept, Entry { hardlink: Some([2; 16]), ..before });
}

#[test]
fn what_is_kept_has_the_names_that_its_owners_have_now() {
    let before = Entry { user: b"ann"[..].into(), ..Entry::empty(EntryKind::File) };
    let names = (b"anna"[..].into(), b"staff"[..].into());
    let kept = kept_entry(&before, None, Some(names));
    assert_eq!((&kept.user[..], &kept.group[..]), (&b"anna"[..], &b"staff"[..]));
}
