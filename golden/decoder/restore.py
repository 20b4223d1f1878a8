#!/usr/bin/env python3
"""A second, independent decoder of the stored format, written from docs/format.md alone.

It keeps that document honest, and is what is left if holdall itself should not be. It restores a
whole snapshot of a repository in a directory, checks every hash and signature on the way, and
refuses damage instead of working around it. It is slow, and writes nothing but the target.
"""

import argparse
import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kit
from age import WrongKey
from fields import Damage, require
from keys import Keys
from records import Snapshot, read_snapshots
from storage import Storage
from tree import Objects, Tree
from unlocking import Lock
from writing import Target

MARKER = b"holdall repository, version 1\n"
FAILED, INCOMPLETE, WRONG_PASSWORD, DAMAGED = 1, 3, 12, 20


def main() -> int:
    """Runs the command line, and gives the exit status."""
    arguments = _arguments()
    try:
        with _shared(arguments.repository / "lock"):
            return _run(arguments)
    except Damage as damage:
        print(f"damaged: {damage}", file=sys.stderr)
        return DAMAGED
    except WrongKey as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG_PASSWORD
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Restores a snapshot of a holdall repository in a directory.",
        epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 done but for some metadata or "
        "special files, 12 wrong password or recovery kit, 20 the repository is damaged.",
    )
    parser.add_argument("repository", type=Path, metavar="REPOSITORY")
    opener = parser.add_mutually_exclusive_group(required=True)
    opener.add_argument("--password-file", type=Path, metavar="FILE")
    opener.add_argument("--recovery-kit", type=Path, metavar="FILE")
    parser.add_argument("--snapshot", default="latest", metavar="ID", help="the beginning of an id")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--target", metavar="DIR", help="a folder that is empty or not there")
    action.add_argument("--list", action="store_true", help="only lists the snapshots")
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> int:
    directory = arguments.repository
    require((directory / "holdall-repository").read_bytes() == MARKER, "not a repository's marker")
    lock = Lock(directory)
    if arguments.password_file:
        password = arguments.password_file.read_bytes().removesuffix(b"\n")
        keys = lock.open_with_password(password)
    else:
        keys = lock.open_with_kit(kit.parse(arguments.recovery_kit.read_text()))
    snapshots = read_snapshots(directory, keys)
    if arguments.list:
        for snapshot in snapshots:
            _print(snapshot)
        return 0
    snapshot = _chosen(snapshots, arguments.snapshot)
    return _restore(snapshot, directory, keys, arguments.target)


def _restore(snapshot: Snapshot, directory: Path, keys: Keys, folder: str) -> int:
    objects = Objects(keys, Storage(directory, keys.repository))
    target = Target(folder)
    target.write(Tree(objects, snapshot.record.head.root))
    secret = snapshot.record.secret
    require(
        (target.entries, target.content_bytes) == (secret.items, secret.content_bytes),
        "the tree has more or less than its record says",
    )
    for line in target.left_out:
        print(f"left out: {line}", file=sys.stderr)
    return INCOMPLETE if target.left_out else 0


def _chosen(snapshots: list[Snapshot], name: str) -> Snapshot:
    if name == "latest":
        found = snapshots[-1:]
    else:
        found = [one for one in snapshots if one.record.hash.hex().startswith(name)]
    if len(found) != 1:
        raise FileNotFoundError(f"{len(found)} snapshots are called {name}")
    return found[0]


def _print(snapshot: Snapshot) -> None:
    record = snapshot.record
    words = [record.hash.hex(), str(record.received), record.secret.host]
    words += [path.decode(errors="backslashreplace") for path in record.secret.paths]
    words += [f"[{tag}]" for tag in snapshot.tags]
    words += ["pinned"] if snapshot.pinned else []
    print(" ".join(words))


@contextmanager
def _shared(lock: Path) -> Iterator[None]:
    """Keeps writers of this computer out, if there is a lock file."""
    if not lock.exists():
        yield
        return
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield


if __name__ == "__main__":
    sys.exit(main())
