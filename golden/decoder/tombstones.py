"""Tombstones: what stays of a forgotten record, so that its machine's chain has no gap.

Chapter 7 of docs/format.md.
"""

from dataclasses import dataclass
from pathlib import Path

from fields import Fields, require, stored
from heads import Head, read_head
from keys import SIGNATURE_BYTES, check_signature

RETENTION, REQUEST = 1, 2


@dataclass(frozen=True)
class Tombstone:
    """A forgotten record: `hash` named it, `position` was its place in the log."""

    hash: bytes
    head: Head
    position: int


def read_tombstone(path: Path, repository: bytes) -> Tombstone:
    """Reads a tombstone; in a directory anybody may have signed."""
    fields = Fields(stored(path), str(path))
    fields.constant(b"HTmb\1", "magic and version")
    fields.code([RETENTION, REQUEST], "reason")
    fields.constant(bytes(2), "reserved field")
    record_hash = fields.take(32)
    position = fields.unsigned(8)
    fields.signed(8)
    signer = fields.take(32)
    head = read_head(fields, repository)
    signed = fields.data[: fields.at]
    check_signature("tombstone", signer, signed, fields.take(SIGNATURE_BYTES))
    fields.end()
    require(position == int(path.name, 16), f"{path}: position and name differ")
    return Tombstone(record_hash, head, position)
