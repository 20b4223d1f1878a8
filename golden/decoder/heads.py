"""Heads of records: what everybody can read of a record, and what its machine signs.

Chapter 5 of docs/format.md. A head stays when its record is forgotten.
"""

from dataclasses import dataclass

import blake3
from fields import Fields, require
from keys import SIGNATURE_BYTES, check_signature

SNAPSHOT, CHECKPOINT, AMENDMENT = 1, 2, 3
RECORD_VERSION, COPY_VERSION = 2, 3
HEAD_MAX_BYTES = 4608
MAX_TAGS = 256
SEALED_HASH_AT = 160


@dataclass(frozen=True)
class Head:
    """The half of a record that everybody can read."""

    kind: int
    pinned: bool
    machine: bytes
    series: bytes
    sequence: int
    root: bytes
    previous: bytes
    sealed_hash: bytes
    tokens: list[bytes]
    amended: bytes
    taken: int | None
    binding: bytes


def read_head(whole: Fields, repository: bytes) -> Head:
    """Reads a head and its length before it, and checks its signature."""
    length = whole.unsigned(4)
    require(length <= HEAD_MAX_BYTES, f"{whole.what}: a head of {length} bytes")
    data = whole.take(length)
    fields = Fields(data, f"{whole.what}: head")
    fields.constant(b"HRec", "magic")
    version = fields.code([RECORD_VERSION, COPY_VERSION], "version")
    kind = fields.code([SNAPSHOT, CHECKPOINT, AMENDMENT], "kind")
    pinned = fields.code([0, 1], "pinned") == 1
    fields.constant(b"\0", "reserved field")
    fields.constant(repository, "repository")
    machine, key, series = fields.take(16), fields.take(32), fields.take(16)
    sequence = fields.unsigned(8)
    root, previous, sealed_hash = (fields.take(32) for _ in range(3))
    count = fields.unsigned(2)
    require(count <= MAX_TAGS, f"{fields.what}: {count} tags")
    tokens = [fields.take(16) for _ in range(count)]
    amended = fields.take(32) if kind == AMENDMENT else b""
    is_copy = version == COPY_VERSION
    require(not is_copy or kind != AMENDMENT, f"{fields.what}: an amendment that is a copy")
    taken = fields.signed(8) if is_copy else None
    signed = data[: fields.at]
    check_signature("record", key, signed, fields.take(SIGNATURE_BYTES))
    fields.end()
    return Head(
        kind, pinned, machine, series, sequence, root, previous, sealed_hash, tokens, amended,
        taken, _binding(signed),
    )


def _binding(signed: bytes) -> bytes:
    """What the sealed half must name: the head without the sealed half's hash."""
    unsealed = signed[:SEALED_HASH_AT] + bytes(32) + signed[SEALED_HASH_AT + 32 :]
    return blake3.derive_key("holdall v1 record head", unsealed)
