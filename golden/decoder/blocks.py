"""What can be seen of a block without a key: its header, its table, its name.

Chapters 2 and 3 of docs/format.md.
"""

from dataclasses import dataclass

import blake3
from fields import Fields, require

HEADER_BYTES = 136
COMMITTED_BYTES = 104
AES_256_GCM, CHACHA20_POLY1305 = 1, 2
NODES, CHUNKS, RECORD = 1, 2, 3
KIND_NAMES = {NODES: "nodes", CHUNKS: "chunks", RECORD: "record"}
TAG_BYTES = 16
PAYLOAD_MAX_BYTES = 5 * 1024 * 1024
TABLE_MAX_BYTES = 1024 * 1024
MAX_OBJECTS = 16_384
NODE_MAX_REFERENCES = 4096
ID_BYTES = 32


@dataclass(frozen=True)
class Header:
    """The first 136 bytes of a block; `encoded` are all of them."""

    encoded: bytes
    suite: int
    kind: int
    repository: bytes
    epoch: int
    table_bytes: int
    payload_bytes: int
    table_hash: bytes
    commitment: bytes


@dataclass(frozen=True)
class Listed:
    """An object as the table lists it; only nodes have references."""

    id: bytes
    references: list[bytes]


@dataclass(frozen=True)
class Block:
    """A whole block, still sealed."""

    header: Header
    table: bytes
    payload: bytes

    def name(self) -> bytes:
        """The hash of all of its bytes."""
        return blake3.digest(self.header.encoded + self.table + self.payload)


def parse_header(data: bytes, what: str) -> Header:
    """Reads a header."""
    fields = Fields(data, f"{what}: block header")
    fields.constant(b"HBlk\1", "magic and version")
    suite = fields.code([AES_256_GCM, CHACHA20_POLY1305], "suite")
    kind = fields.code(KIND_NAMES, "kind")
    fields.constant(b"\0", "reserved field")
    repository = fields.take(16)
    epoch = fields.unsigned(4)
    table_bytes = fields.unsigned(4)
    payload_bytes = fields.unsigned(4)
    fields.constant(bytes(4), "key slots")
    fields.take(32)
    table_hash = fields.take(32)
    commitment = fields.take(32)
    fields.end()
    require(table_bytes <= TABLE_MAX_BYTES, f"{what}: a table of {table_bytes} bytes")
    fits = TAG_BYTES <= payload_bytes <= PAYLOAD_MAX_BYTES
    require(fits, f"{what}: a payload of {payload_bytes} bytes")
    return Header(
        data, suite, kind, repository, epoch, table_bytes, payload_bytes, table_hash, commitment
    )


def check_table(header: Header, table: bytes, what: str) -> None:
    """Compares a table with what its header says of it."""
    require(len(table) == header.table_bytes, f"{what}: the table has another length")
    require(blake3.digest(table) == header.table_hash, f"{what}: the table has another hash")


def parse_table(header: Header, table: bytes, what: str) -> list[Listed]:
    """Reads a table that was checked."""
    fields = Fields(table, f"{what}: table")
    count = fields.unsigned(4)
    require(count <= MAX_OBJECTS, f"{what}: {count} objects")
    require(count == 0 or header.kind != RECORD, f"{what}: objects in a record's block")
    listed = [_parse_listed(fields, header.kind) for _ in range(count)]
    fields.end()
    return listed


def _parse_listed(fields: Fields, kind: int) -> Listed:
    object_id = fields.take(ID_BYTES)
    if kind != NODES:
        return Listed(object_id, [])
    count = fields.unsigned(2)
    require(count <= NODE_MAX_REFERENCES, f"{fields.what}: {count} references")
    references = [fields.take(ID_BYTES) for _ in range(count)]
    ascending = all(a < b for a, b in zip(references, references[1:]))
    require(ascending, f"{fields.what}: references do not ascend")
    return Listed(object_id, references)


def parse_block(data: bytes, what: str) -> Block:
    """Reads a whole block that stands alone."""
    header = parse_header(data[:HEADER_BYTES], what)
    fields = Fields(data, what)
    fields.take(HEADER_BYTES)
    table = fields.take(header.table_bytes)
    payload = fields.take(header.payload_bytes)
    fields.end()
    check_table(header, table, what)
    return Block(header, table, payload)
