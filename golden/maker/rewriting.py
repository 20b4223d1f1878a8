"""What a repository of today's size and processor would not have: a small pack, the other suite.

A tail is closed as chapter 20 of docs/format.md says of a full one, and the next writer publishes
it. The configuration is signed anew with the other suite, so that later blocks are sealed with it.
"""

import secrets
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import blake3
from blocks import CHACHA20_POLY1305, CHUNKS, NODES
from storage import Place, tail

SUITE_AT, SIGNATURE_AT = 6, 64


def close_tails(directory: Path, repository: bytes) -> None:
    """Puts footer and trailer behind the payloads of all tails."""
    for journal in (directory / "tails").glob("*.journal"):
        kind = NODES if journal.name.startswith("nodes") else CHUNKS
        payloads = journal.with_suffix(".payload")
        places = list(tail(journal, payloads, kind, repository))
        with payloads.open("ab") as file:
            file.write(_footer_and_trailer(kind, repository, places))


def _footer_and_trailer(kind: int, repository: bytes, places: list[Place]) -> bytes:
    front = b"HPak\1" + bytes([kind, 0, 0]) + repository + secrets.token_bytes(32)
    footer = bytearray(front + len(places).to_bytes(4, "little"))
    for place in places:
        footer += place.offset.to_bytes(8, "little") + place.arrival.to_bytes(8, "little")
        footer += place.name + place.header.encoded + place.table
    length = len(footer).to_bytes(4, "little")
    return bytes(footer) + length + blake3.digest(bytes(footer)) + bytes(4) + b"HPakEnd1"


def seal_with_chacha20(directory: Path, master_secret: bytes) -> None:
    """Signs a configuration that names the other suite for new blocks."""
    path = directory / "config"
    signed = bytearray(path.read_bytes()[:SIGNATURE_AT])
    signed[SUITE_AT] = CHACHA20_POLY1305
    seed = blake3.derive_key("holdall v1 owner signing key", master_secret)
    owner = Ed25519PrivateKey.from_private_bytes(seed)
    path.write_bytes(signed + owner.sign(b"holdall v1 config\0" + signed))
