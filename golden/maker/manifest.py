"""What a restored tree must be, one line for each path: kind, mode, owner, time, content, path.

    file 0644 12345:12346 1000000000.000000005 13 SHA256 letter.txt user.note=6b657074

The test that reads it lists restored trees in the same words. Bytes that are not printable are
escaped as in a string of Rust.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

KINDS = {
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFREG: "file",
    stat.S_IFIFO: "fifo",
}
ESCAPES = {ord("\t"): "\\t", ord("\r"): "\\r", ord("\n"): "\\n"}


def of_tree(root: Path) -> str:
    """The manifest of everything below `root`, and of itself as `.`."""
    top = os.fsencode(root)
    paths = sorted([b".", *_below(top, b"")])
    first_names: dict[int, bytes] = {}
    return "".join(_line(top, path, first_names) + "\n" for path in paths)


def _below(top: bytes, folder: bytes) -> Iterator[bytes]:
    for name in os.listdir(os.path.join(top, folder)):
        path = os.path.join(folder, name)
        yield path
        if stat.S_ISDIR(os.lstat(os.path.join(top, path)).st_mode):
            yield from _below(top, path)


def _line(top: bytes, path: bytes, first_names: dict[int, bytes]) -> str:
    whole = os.path.join(top, path)
    found = os.lstat(whole)
    first = first_names.setdefault(found.st_ino, path)
    if first != path:
        return f"same {_escaped(path)} {_escaped(first)}"
    kind = KINDS[stat.S_IFMT(found.st_mode)]
    content: list[str] = []
    if kind == "link":
        content = [_escaped(os.readlink(whole))]
    elif kind == "file":
        kind = "sparse" if _has_holes(whole) else kind
        content = [str(found.st_size), _sha256(whole)]
    # The mode of a link means nothing.
    mode = "-" if kind == "link" else f"{stat.S_IMODE(found.st_mode):04o}"
    seconds, nanoseconds = divmod(found.st_mtime_ns, 10**9)
    words = [kind, mode, f"{found.st_uid}:{found.st_gid}", f"{seconds}.{nanoseconds:09}"]
    return " ".join([*words, *content, _escaped(path), *_attributes(whole)])


def _attributes(path: bytes) -> list[str]:
    names = sorted(os.listxattr(path, follow_symlinks=False))
    return [f"{name}={os.getxattr(path, name, follow_symlinks=False).hex()}" for name in names]


def _has_holes(path: bytes) -> bool:
    size = os.lstat(path).st_size
    with open(path, "rb") as file:
        return size > 0 and os.lseek(file.fileno(), 0, os.SEEK_HOLE) < size


def _sha256(path: bytes) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _escaped(path: bytes) -> str:
    return "".join(_escaped_byte(byte) for byte in path)


def _escaped_byte(byte: int) -> str:
    if byte in ESCAPES:
        return ESCAPES[byte]
    if byte in b"\\'\"":
        return "\\" + chr(byte)
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"
