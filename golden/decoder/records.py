"""Records: which snapshots there are, and what is signed about them.

Chapters 5, 6 and 14 of docs/format.md; what is forgotten is in `tombstones`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import blake3
from blocks import RECORD, parse_block
from fields import Fields, require, stored
from heads import AMENDMENT, MAX_TAGS, SNAPSHOT, Head, read_head
from keys import SIGNATURE_BYTES, Keys, check_signature
from sealing import open_record_half
from tombstones import Tombstone, read_tombstone

RECORD_MAX_BYTES = 4 * 1024 * 1024
TAG_MAX_BYTES = 1024
NAME_MAX_BYTES = 1024
MAX_PATHS = 4096
PATH_MAX_BYTES = 64 * 1024
NO_RECORD = bytes(32)


@dataclass(frozen=True)
class Secret:
    """The sealed half of a record."""

    items: int
    content_bytes: int
    unreadable: int
    client_time: int
    paths: list[bytes]
    host: str
    user: str
    program: str
    tags: list[str]
    excludes: list[str]
    original_received: int | None


@dataclass(frozen=True)
class Record:
    """A record with its receipt; `hash` names it."""

    hash: bytes
    head: Head
    secret: Secret
    position: int
    received: int


@dataclass(frozen=True)
class Snapshot:
    """A snapshot as its last amendment leaves it."""

    record: Record
    pinned: bool
    tags: list[str]


def read_snapshots(directory: Path, keys: Keys) -> list[Snapshot]:
    """All snapshots, oldest first; every record is checked, and its place in its chain."""
    forgotten = _by_position(directory / "tombstones")
    kept = _by_position(directory / "records")
    chained: list[Record | Tombstone] = []
    for position in sorted({*forgotten, *kept}):
        # A record that has a tombstone counts for nothing.
        if position in forgotten:
            chained.append(read_tombstone(forgotten[position], keys.repository))
        else:
            chained.append(_read_stored(kept[position], keys))
    _check_chains(chained)
    return _amended([record for record in chained if isinstance(record, Record)])


def _by_position(folder: Path) -> dict[int, Path]:
    """The files of a folder, by the log position that each is called."""
    paths = list(folder.glob("*"))
    for path in paths:
        named = re.fullmatch("[0-9a-f]{16}", path.name)
        require(named is not None, f"{path}: not a log position")
    return {int(path.name, 16): path for path in paths}


def _check_chains(chained: list[Record | Tombstone]) -> None:
    """Each machine's records count from 1, and each names the one before."""
    newest: dict[bytes, Record | Tombstone] = {}
    for record in chained:
        before = newest.get(record.head.machine)
        sequence = before.head.sequence + 1 if before else 1
        previous = before.hash if before else NO_RECORD
        what = f"record {record.hash.hex()}"
        require(record.head.sequence == sequence, f"{what}: a record before it is missing")
        require(record.head.previous == previous, f"{what}: does not follow the one before it")
        newest[record.head.machine] = record


def _amended(records: list[Record]) -> list[Snapshot]:
    snapshots: dict[bytes, Snapshot] = {}
    for record in records:
        head, secret = record.head, record.secret
        if head.kind == SNAPSHOT:
            snapshots[record.hash] = Snapshot(record, head.pinned, secret.tags)
        elif head.kind == AMENDMENT and head.amended in snapshots:
            what = f"record {record.hash.hex()}"
            snapshot = snapshots[head.amended].record
            same = (head.root, head.series) == (snapshot.head.root, snapshot.head.series)
            require(same, f"{what}: amends a snapshot of another root or series")
            snapshots[head.amended] = Snapshot(snapshot, head.pinned, secret.tags)
    return list(snapshots.values())


def _read_stored(path: Path, keys: Keys) -> Record:
    fields = Fields(stored(path), str(path))
    length = fields.unsigned(4)
    require(length <= RECORD_MAX_BYTES, f"{path}: a record of {length} bytes")
    record = fields.take(length)
    record_hash = blake3.digest(record)
    position, received = _read_receipt(fields, record_hash, keys.repository)
    fields.end()
    require(position == int(path.name, 16), f"{path}: receipt and name differ")
    halves = Fields(record, str(path))
    head = read_head(halves, keys.repository)
    sealed = halves.take(halves.left())
    sealed_hash = blake3.digest(sealed)
    require(sealed_hash == head.sealed_hash, f"{path}: the sealed half has another hash")
    block = parse_block(sealed, str(path))
    opened = open_record_half(keys, block, RECORD, str(path))
    secret = _read_secret(opened, head.binding, str(path))
    _check_halves(head, secret, keys, str(path))
    return Record(record_hash, head, secret, position, received)


def _read_receipt(fields: Fields, record_hash: bytes, repository: bytes) -> tuple[int, int]:
    """Log position and time; in a directory anybody may have signed."""
    start = fields.at
    fields.constant(b"HRct\1", "magic and version of the receipt")
    fields.code([0, 1], "clock sure")
    fields.constant(bytes(2), "reserved field")
    fields.constant(repository, "repository of the receipt")
    fields.constant(record_hash, "record hash of the receipt")
    position, received = fields.unsigned(8), fields.signed(8)
    signer = fields.take(32)
    signed = fields.data[start : fields.at]
    check_signature("receipt", signer, signed, fields.take(SIGNATURE_BYTES))
    return position, received


def _read_secret(data: bytes, binding: bytes, what: str) -> Secret:
    fields = Fields(data, f"{what}: sealed half")
    fields.constant(b"HSec\3", "magic and version")
    fields.constant(binding, "head that it is bound to")
    items, content_bytes, unreadable = (fields.unsigned(8) for _ in range(3))
    client_time = fields.signed(8)
    paths = fields.strings(MAX_PATHS, PATH_MAX_BYTES)
    host, user, program = (fields.text(fields.varint(NAME_MAX_BYTES)) for _ in range(3))
    tags = fields.texts(MAX_TAGS, TAG_MAX_BYTES)
    excludes = fields.texts(MAX_PATHS, PATH_MAX_BYTES)
    copied = fields.code([0, 1, 2], "copied")
    original_received = None
    if copied >= 1:
        fields.take(32)
        original_received = fields.signed(8)
    if copied == 2:
        fields.take(32)
    fields.end()
    return Secret(
        items, content_bytes, unreadable, client_time, paths, host, user, program, tags, excludes,
        original_received,
    )


def _check_halves(head: Head, secret: Secret, keys: Keys, what: str) -> None:
    """Compares what the head says by tokens with what the sealed half says in the clear."""
    tokens = [keys.tag_token(tag.encode()) for tag in secret.tags]
    require(head.tokens == tokens, f"{what}: tag tokens and tags differ")
    same_age = head.taken in (None, secret.original_received)
    require(same_age, f"{what}: the halves give a copy two ages")
    if head.kind != AMENDMENT:
        path_keys = {path.strip(b"/").replace(b"/", b"\0") for path in secret.paths}
        series = keys.series(secret.host.encode(), path_keys)
        require(head.series == series, f"{what}: series, host and paths differ")
        return
    emptied = Secret(0, 0, 0, 0, [], "", "", "", secret.tags, [], None)
    require(secret == emptied, f"{what}: an amendment that changes more than tags")
