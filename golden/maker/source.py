"""The tree of the golden repository: a little of everything that the format has a place for.

Names, contents, modes and times are always the same. Nothing is larger than it must be: long files
repeat themselves, so that few bytes are stored.
"""

import os
import random
import stat
from pathlib import Path

# Nobody's, so that an owner is restored by number.
OWNER, GROUP = 12345, 12346
TIME = 1_000_000_000_000_000_005
BEFORE_1970 = -1_000_000_007
# A period somewhat longer than the shortest chunk: cuts come back at the same place, and the file
# is one chunk many times over.
PERIOD_BYTES = 340_000
# More chunks than an entry has room for: they are in a list.
PERIODS = 60


def make(root: Path) -> None:
    """Makes what the first snapshot holds."""
    words = _words()
    root.mkdir()
    (root / "letter.txt").write_bytes(b"Dear reader,\n")
    (root / "empty.txt").write_bytes(b"")
    (root / "empty").mkdir()
    (root / "nested/a/b/c").mkdir(parents=True)
    (root / "nested/a/b/c/deep.txt").write_bytes(b"deep\n")
    (root / "pages.txt").write_bytes(words[:150_000] * 16)
    (root / "long.txt").write_bytes(words[:PERIOD_BYTES] * PERIODS)
    (root / "noise.bin").write_bytes(random.Random(1).randbytes(20_000))
    (root / "hard-1").write_bytes(words[:2_000])
    os.link(root / "hard-1", root / "nested/hard-2")
    os.symlink("letter.txt", root / "link")
    os.symlink(b"nowhere/\xff", root / "dangling")
    Path(os.fsdecode(bytes(root) + b"/caf\xe9 \xfc\xff\n")).write_bytes(b"not UTF-8\n")
    os.setxattr(root / "letter.txt", "user.note", b"kept\0whole")
    os.setxattr(root / "nested", "user.long", words[:3_000])
    _make_sparse(root / "sparse.img")
    _make_sparse(root / "one-hole.img", [])
    os.mkfifo(root / "pipe")
    for number in range(60):
        (root / f"nested/small-{number:02}").write_bytes(b"%d\n" % number * (number * 20))
    (root / "noise.bin").chmod(0o4751)
    (root / "empty").chmod(0o1777)
    (root / "nested").chmod(0o2750)
    (root / "empty.txt").chmod(0o400)
    _settle(root, list(root.rglob("*")))
    os.utime(root / "noise.bin", ns=(BEFORE_1970, BEFORE_1970))


def change(root: Path) -> None:
    """Turns it into what the second snapshot holds."""
    (root / "letter.txt").write_bytes(b"Dear reader,\nall is well.\n")
    (root / "empty.txt").unlink()
    (root / "nested/small-07").rename(root / "nested/moved")
    (root / "nested/new").mkdir()
    (root / "nested/new/more.bin").write_bytes(random.Random(2).randbytes(6_000))
    with (root / "pages.txt").open("ab") as file:
        file.write(_words()[200_000:260_000])
    touched = ["letter.txt", "pages.txt", "nested", "nested/new", "nested/new/more.bin"]
    _settle(root, [root / name for name in touched])
    os.utime(root / "letter.txt", ns=(TIME + 1, TIME + 1))


def _words() -> bytes:
    """Text of few words, which compresses well and hardly repeats what a rolling hash sees."""
    source = random.Random(0)
    some = [b"word%x" % source.randrange(1 << 16) for _ in range(12)]
    text = bytearray()
    while len(text) < PERIOD_BYTES:
        text += source.choice(some) + b" "
    return bytes(text)


def _make_sparse(path: Path, offsets: tuple[int, ...] | list[int] = (65_536, 3 << 20)) -> None:
    with path.open("wb") as file:
        file.truncate(8 << 20)
        for offset in offsets:
            file.seek(offset)
            file.write(b"island\n" * 1_000)


def _settle(root: Path, paths: list[Path]) -> None:
    """Gives the root and these their owner and time."""
    for path in [root, *paths]:
        mode = path.lstat().st_mode
        os.chown(path, OWNER, GROUP, follow_symlinks=False)
        if not stat.S_ISLNK(mode):
            # A new owner takes setuid and setgid away.
            os.chmod(path, stat.S_IMODE(mode))
        os.utime(path, ns=(TIME, TIME), follow_symlinks=False)
