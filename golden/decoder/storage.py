"""Where blocks lie in a repository's directory: in packs, and in the tails of packs to come.

Chapters 4 and 20 of docs/format.md. Every block that was acknowledged is compared with its name
once, whether a snapshot needs it or not. What a crash may have left at the end of a tail is not
damage; it is passed over, as a writer would cut it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import blake3
from blocks import (
    CHUNKS,
    HEADER_BYTES,
    KIND_NAMES,
    NODES,
    Block,
    Header,
    Listed,
    check_table,
    parse_header,
    parse_table,
)
from fields import Damage, Fields, require

FOOTER_MAX_BYTES = 16 * 1024 * 1024
TRAILER_BYTES = 48
PACK_MAX_BLOCKS = 65_536
JOURNAL_START_BYTES = 88
JOURNAL_MAX_BYTES = 32 * 1024 * 1024
ENTRY_MIN_BYTES = 228
ENTRY_HEADER_AT = 60
CHECKSUM_BYTES = 32


@dataclass(frozen=True)
class Place:
    """Where a block lies: its payload is in a file, the rest was in a footer or journal."""

    file: Path
    offset: int
    arrival: int
    name: bytes
    header: Header
    table: bytes

    def read(self) -> Block:
        """Puts the block together again, and compares its name."""
        with self.file.open("rb") as file:
            file.seek(self.offset)
            block = Block(self.header, self.table, file.read(self.header.payload_bytes))
        require(block.name() == self.name, f"{self.file}: the block at {self.offset} is another")
        return block


@dataclass(frozen=True)
class Copy:
    """One copy of an object: the block, and which one of its table it is."""

    place: Place
    position: int
    listed: Listed


class Storage:
    """All blocks of a directory, found by the ids of what is in them."""

    def __init__(self, directory: Path, repository: bytes) -> None:
        packs = _packs(directory / "packs", _condemned(directory / "condemned"), repository)
        places = [*packs, *_tails(directory / "tails", repository)]
        self._copies: dict[tuple[int, bytes], list[Copy]] = {}
        for place in sorted(places, key=lambda place: place.arrival):
            listed = parse_table(place.header, place.table, str(place.file))
            for position, one in enumerate(listed):
                copies = self._copies.setdefault((place.header.kind, one.id), [])
                copies.append(Copy(place, position, one))

    def copies(self, kind: int, object_id: bytes) -> list[Copy]:
        """The copies of an object, the authoritative one first."""
        found = self._copies.get((kind, object_id))
        if not found:
            raise Damage(f"{KIND_NAMES[kind]}: object {object_id.hex()} is missing")
        return found


def _condemned(folder: Path) -> set[str]:
    """The names of the packs that are to be deleted; a mark that is damaged counts for nothing."""
    names: set[str] = set()
    for path in folder.glob("*"):
        data = path.read_bytes()
        fields = Fields(data, str(path))
        try:
            fields.constant(b"HCon\1" + bytes(3), "magic, version and reserved field")
            fields.constant(bytes.fromhex(path.name), "pack")
            fields.take(8 + 8)
            fields.constant(blake3.digest(data[: fields.at]), "checksum")
            fields.end()
        except (Damage, ValueError):
            continue
        names.add(path.name)
    return names


def _packs(folder: Path, condemned: set[str], repository: bytes) -> Iterator[Place]:
    """The blocks of all packs that are not condemned."""
    for path in sorted(folder.glob("*/*")):
        named = re.fullmatch("[0-9a-f]{64}", path.name) and path.parent.name == path.name[:2]
        require(bool(named), f"{path}: not a pack's name")
        if path.name not in condemned:
            yield from _pack(path, repository)


def _pack(path: Path, repository: bytes) -> list[Place]:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        require(size >= TRAILER_BYTES, f"{path}: too short for a pack")
        file.seek(size - TRAILER_BYTES)
        trailer = Fields(file.read(TRAILER_BYTES), f"{path}: trailer")
        footer_bytes = trailer.unsigned(4)
        trailer.constant(bytes.fromhex(path.name), "footer hash")
        trailer.constant(bytes(4), "reserved field")
        trailer.constant(b"HPakEnd1", "magic")
        payloads_bytes = size - TRAILER_BYTES - footer_bytes
        require(
            footer_bytes <= FOOTER_MAX_BYTES and payloads_bytes >= 0,
            f"{path}: a footer of {footer_bytes} bytes",
        )
        file.seek(payloads_bytes)
        footer = file.read(footer_bytes)
        require(blake3.digest(footer).hex() == path.name, f"{path}: the footer has another hash")
    places = _footer(path, footer, repository, payloads_bytes)
    for place in places:
        place.read()
    return places


def _footer(path: Path, footer: bytes, repository: bytes, payloads_bytes: int) -> list[Place]:
    fields = Fields(footer, f"{path}: footer")
    fields.constant(b"HPak\1", "magic and version")
    kind = fields.code([NODES, CHUNKS], "kind")
    fields.constant(bytes(2), "reserved field")
    fields.constant(repository, "repository")
    fields.take(32)
    count = fields.unsigned(4)
    require(count <= PACK_MAX_BLOCKS, f"{path}: {count} blocks")
    places: list[Place] = []
    end = 0
    for _ in range(count):
        offset, arrival = fields.unsigned(8), fields.unsigned(8)
        place = _place(fields, path, offset, arrival, kind, repository)
        require(offset == end, f"{path}: a gap before the block at {offset}")
        end = offset + place.header.payload_bytes
        places.append(place)
    fields.end()
    require(end == payloads_bytes, f"{path}: a gap before the footer")
    return places


def _place(
    fields: Fields, path: Path, offset: int, arrival: int, kind: int, repository: bytes
) -> Place:
    """What footer and journal have in common: name, header and table of a block."""
    name = fields.take(32)
    header = parse_header(fields.take(HEADER_BYTES), str(path))
    require(header.kind == kind, f"{path}: a block of another kind")
    require(header.repository == repository, f"{path}: a block of another repository")
    table = fields.take(header.table_bytes)
    check_table(header, table, str(path))
    return Place(path, offset, arrival, name, header, table)


@dataclass(frozen=True)
class Entry:
    """A sound entry of a journal: its place in the journal, and what it says."""

    start: int
    end: int
    durable: int
    place: Place


def _tails(folder: Path, repository: bytes) -> Iterator[Place]:
    """The blocks of all tails; a journal without payloads is of a pack that was published."""
    for journal in sorted(folder.glob("*.journal")):
        name = re.fullmatch(r"(nodes|chunks)\.[0-9]+", journal.stem)
        require(name is not None, f"{journal}: not a journal's name")
        payloads = journal.with_suffix(".payload")
        if payloads.exists():
            kind = NODES if journal.stem.startswith("nodes") else CHUNKS
            yield from tail(journal, payloads, kind, repository)


def tail(journal: Path, payloads: Path, kind: int, repository: bytes) -> Iterator[Place]:
    """The blocks of one tail, up to where a crash may have cut it."""
    data = journal.read_bytes()
    require(len(data) <= JOURNAL_MAX_BYTES, f"{journal}: {len(data)} bytes")
    if len(data) < JOURNAL_START_BYTES:
        # A crash before the first block.
        return
    start = Fields(data[:JOURNAL_START_BYTES], str(journal))
    start.constant(b"HJnl\2" + bytes([kind, 0, 0]) + repository, "magic to repository")
    key = start.take(32)
    checksum = blake3.digest(data[: JOURNAL_START_BYTES - CHECKSUM_BYTES])
    start.constant(checksum, "checksum of the front")
    entries = _entries(data, key, journal, payloads, kind, repository)
    durable = max((entry.durable for entry in entries), default=0)
    sound_to = JOURNAL_START_BYTES
    for entry in entries:
        if entry.start != sound_to:
            break
        sound_to = entry.end
    require(sound_to >= durable, f"{journal}: a hole at byte {sound_to}")
    for entry in entries:
        if entry.start >= sound_to:
            return
        try:
            entry.place.read()
        except Damage:
            if entry.start < durable:
                raise
            return
        yield entry.place


def _entries(
    data: bytes, key: bytes, journal: Path, payloads: Path, kind: int, repository: bytes
) -> list[Entry]:
    """The sound entries; behind a hole the next one is found by its block's magic."""
    entries: list[Entry] = []
    at = JOURNAL_START_BYTES
    while at >= 0 and len(data) - at >= ENTRY_MIN_BYTES:
        length = int.from_bytes(data[at : at + 4], "little")
        end = at + length
        body, checksum = data[at : end - CHECKSUM_BYTES], data[end - CHECKSUM_BYTES : end]
        fits = length >= ENTRY_MIN_BYTES and end <= len(data)
        if fits and blake3.keyed(key, body) == checksum:
            entries.append(_entry(body, at, journal, payloads, kind, repository))
            at = end
        else:
            magic = data.find(b"HBlk", at + ENTRY_HEADER_AT + 1)
            at = magic - ENTRY_HEADER_AT if magic >= 0 else -1
    return entries


def _entry(
    body: bytes, start: int, journal: Path, payloads: Path, kind: int, repository: bytes
) -> Entry:
    fields = Fields(body, str(journal))
    fields.take(4)
    durable, arrival, offset = (fields.unsigned(8) for _ in range(3))
    place = _place(fields, payloads, offset, arrival, kind, repository)
    fields.end()
    return Entry(start, start + len(body) + CHECKSUM_BYTES, durable, place)
