"""Writing a snapshot into a folder: the absolute paths of the snapshot, below the folder.

Directories get their modes and times last, from the inside out, so that nothing that is written
later moves them. Nothing is ever written through a link: each folder on the way is one that was
made here.
"""

import os
import stat
from collections.abc import Callable, Iterator

from fields import require
from tree import (
    BLOCK_DEVICE,
    CHARACTER_DEVICE,
    DIRECTORY,
    FIFO,
    FILE,
    SOCKET,
    SYMLINK,
    Entry,
    Tree,
    shown,
)

SPECIAL = {
    FIFO: stat.S_IFIFO,
    SOCKET: stat.S_IFSOCK,
    CHARACTER_DEVICE: stat.S_IFCHR,
    BLOCK_DEVICE: stat.S_IFBLK,
}


class Target:
    """The folder that a snapshot is written into; it must be empty, or not there."""

    def __init__(self, folder: str) -> None:
        self._root = os.fsencode(folder)
        os.makedirs(self._root, exist_ok=True)
        if os.listdir(self._root):
            raise FileExistsError(f"{folder} is not empty")
        self._directories: set[bytes] = {b""}
        self._linked: dict[bytes, bytes] = {}
        self.entries = 0
        self.content_bytes = 0
        self.left_out: list[str] = []

    def write(self, tree: Tree) -> None:
        """Writes all entries; what the system does not allow is noted in `left_out`."""
        directories: list[Entry] = []
        for entry in tree.entries():
            self.entries += 1
            self.content_bytes += entry.size if entry.kind == FILE else 0
            if entry.kind == DIRECTORY:
                self._make_directory(entry.key)
                directories.append(entry)
            else:
                self._make_directory(entry.key.rpartition(b"\0")[0])
                if self._make(entry, tree):
                    self._set_metadata(entry, tree)
        for entry in reversed(directories):
            self._set_metadata(entry, tree)

    def _path(self, key: bytes) -> bytes:
        return os.path.join(self._root, key.replace(b"\0", b"/"))

    def _make_directory(self, key: bytes) -> None:
        """Makes a directory and those above it, unless they were made here before."""
        if key in self._directories:
            return
        self._make_directory(key.rpartition(b"\0")[0])
        require(not os.path.lexists(self._path(key)), f"{shown(key)}: not a directory before")
        os.mkdir(self._path(key), 0o700)
        self._directories.add(key)

    def _make(self, entry: Entry, tree: Tree) -> bool:
        """Makes what is no directory; whether it still needs its metadata."""
        path = self._path(entry.key)
        original = self._linked.get(entry.hard_link_group) if entry.hard_link_group else None
        if original is not None:
            os.link(original, path, follow_symlinks=False)
            return False
        if entry.kind == FILE:
            self._make_file(path, entry, tree)
        elif entry.kind == SYMLINK:
            link = tree.read_whole(entry.content)
            require(b"\0" not in link, f"{shown(entry.key)}: a zero byte in a link's target")
            os.symlink(link, path)
        else:
            try:
                os.mknod(path, SPECIAL[entry.kind] | 0o600, os.makedev(*entry.device))
            except PermissionError as error:
                self.left_out.append(f"{shown(entry.key)}: {error.strerror}")
                return False
        if entry.hard_link_group:
            self._linked[entry.hard_link_group] = path
        return True

    def _make_file(self, path: bytes, entry: Entry, tree: Tree) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(handle, "wb") as file:
            file.truncate(entry.size)
            rest = b""
            pieces = tree.read(entry.content)
            for offset, length in tree.extents(entry):
                file.seek(offset)
                rest = _copy(file.write, pieces, rest, length)

    def _set_metadata(self, entry: Entry, tree: Tree) -> None:
        """Owner first, since a new owner takes setuid and capabilities away; times last."""
        path = self._path(entry.key)
        if os.geteuid() == 0:
            os.chown(path, entry.uid, entry.gid, follow_symlinks=False)
        for name, value in tree.attributes(entry):
            try:
                os.setxattr(path, name, value, follow_symlinks=False)
            except OSError as error:
                attribute = name.decode(errors="backslashreplace")
                self.left_out.append(f"{shown(entry.key)}: {attribute}: {error.strerror}")
        if entry.kind != SYMLINK:
            os.chmod(path, _mode(entry, os.lstat(path)))
        os.utime(path, ns=(entry.mtime, entry.mtime), follow_symlinks=False)


def _mode(entry: Entry, found: os.stat_result) -> int:
    """The rights of another owner or group are not those of whoever restores."""
    mode = entry.mode
    if found.st_uid != entry.uid:
        mode &= ~stat.S_ISUID
    if found.st_gid != entry.gid:
        mode &= ~stat.S_ISGID
    return mode


def _copy(
    write: Callable[[bytes], int], pieces: Iterator[bytes], rest: bytes, length: int
) -> bytes:
    """Writes `length` bytes of `rest` and the pieces behind it; gives what is left of the last."""
    while length:
        rest = rest or next(pieces)
        write(rest[:length])
        written = min(len(rest), length)
        rest, length = rest[written:], length - written
    return rest
