#!/usr/bin/env python3
"""Makes the golden repository anew. golden/README.md says when that is right, and when it is not.

    make.py HOLDALL OUT

HOLDALL is the binary, OUT a new folder: what golden/repository is. Root only, since the files that
are backed up belong to nobody.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "decoder"))

import kit  # noqa: E402
import manifest  # noqa: E402
import rewriting  # noqa: E402
import source  # noqa: E402
from keys import Keys  # noqa: E402
from records import read_snapshots  # noqa: E402
from storage import Storage  # noqa: E402
from tree import Objects, Tree  # noqa: E402
from unlocking import Lock  # noqa: E402

PASSWORD = "correct horse battery staple"
LATER_PASSWORD = "another password"
RECORDED_AS = "/golden"
# The recovery kit names it, so it is the same everywhere.
PLACE = Path("/tmp/golden-repository")


def main() -> None:
    """Runs everything in a folder that vanishes."""
    binary, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    out.mkdir()
    if PLACE.exists():
        sys.exit(f"{PLACE} is in the way")
    try:
        with tempfile.TemporaryDirectory() as scratch:
            _make(binary, Path(scratch), out)
        shutil.copytree(PLACE, out / "stored")
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)


def _make(binary: Path, scratch: Path, out: Path) -> None:
    environment = {
        "HOME": str(scratch),
        "HOLDALL_CONFIG_DIR": str(scratch / "config"),
        "HOLDALL_CACHE_DIR": str(scratch / "cache"),
        "HOLDALL_PASSWORD": PASSWORD,
        "HOLDALL_NEW_PASSWORD": LATER_PASSWORD,
        "PATH": os.defpath,
    }

    def holdall(*arguments: str) -> None:
        command = [str(binary), *arguments, "-r", str(PLACE)]
        subprocess.run(command, env=environment, check=True)

    tree, page = scratch / "tree", out / "recovery-kit.txt"
    backup = ["backup", str(tree), "--as", f"{tree}={RECORDED_AS}", "--host", "golden"]
    (out / "password").write_text(PASSWORD + "\n")
    holdall("init", "--recovery-kit", str(page))

    source.make(tree)
    (out / "manifest-1.txt").write_text(manifest.of_tree(tree))
    holdall(*backup, "--tag", "first")

    lock, opener = Lock(PLACE), kit.parse(page.read_text())
    if not _has_list(lock.open_with_kit(opener)):
        sys.exit("these keys cut the long file into few chunks, not into a list: run it again")
    rewriting.close_tails(PLACE, lock.configuration.repository)
    rewriting.seal_with_chacha20(PLACE, lock.ring_by_kit(opener)[0])

    holdall("key", "rotate")
    lock = Lock(PLACE)
    source.change(tree)
    (out / "manifest-2.txt").write_text(manifest.of_tree(tree))
    holdall(*backup, "--tag", "forgotten")
    forgotten = read_snapshots(PLACE, lock.open_with_kit(opener))[-1]
    holdall(*backup, "--tag", "second")
    holdall("forget", forgotten.record.hash.hex())
    holdall("tag", "latest", "--add", "amended", "--pin")
    holdall("key", "add", "--passphrase", "--label", "later")


def _has_list(keys: Keys) -> bool:
    snapshot = read_snapshots(PLACE, keys)[-1]
    tree = Tree(Objects(keys, Storage(PLACE, keys.repository)), snapshot.record.head.root)
    return any(entry.content.list_node for entry in tree.entries())


if __name__ == "__main__":
    main()
