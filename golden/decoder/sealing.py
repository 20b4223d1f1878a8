"""Opening blocks: from a sealed payload to the plain bytes of each object.

Chapters 12 and 13 of docs/format.md.
"""

import hmac

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

import blake3
from blocks import AES_256_GCM, COMMITTED_BYTES, MAX_OBJECTS, Block, parse_table
from fields import Damage, Fields, require
from keys import Keys

PLAIN_MAX_BYTES = 4 * 1024 * 1024
UNPACKED_MAX_BYTES = PLAIN_MAX_BYTES + 4 + 8 * MAX_OBJECTS
PADDED_MIN_BYTES = 4096
PAYLOAD_FRONT_BYTES = 9
RAW, ZSTD = 0, 1
# What zstd gets at once; how much it can give for that is bounded.
ZSTD_STEP_BYTES = 512


def open_block(keys: Keys, block: Block, kind: int, what: str) -> dict[int, bytes]:
    """The plain bytes of the block's objects, by their position in the table."""
    fields = _open(keys, block, kind, what)
    listed = parse_table(block.header, block.table, what)
    require(fields.unsigned(4) == len(listed), f"{what}: seal and table differ in their objects")
    order = [(fields.unsigned(4), fields.unsigned(4)) for _ in listed]
    objects = {position: fields.take(length) for position, length in order}
    fields.end()
    complete = sorted(objects) == list(range(len(listed)))
    require(complete, f"{what}: a table position is there twice or not at all")
    return objects


def open_record_half(keys: Keys, block: Block, kind: int, what: str) -> bytes:
    """The plain bytes of a record's block, which has no objects."""
    fields = _open(keys, block, kind, what)
    require(parse_table(block.header, block.table, what) == [], f"{what}: objects in a record")
    fields.constant(bytes(4), "object count")
    return fields.take(fields.left())


def _open(keys: Keys, block: Block, kind: int, what: str) -> Fields:
    """The unpacked bytes."""
    header = block.header
    require(header.kind == kind, f"{what}: a block of another kind")
    require(header.repository == keys.repository, f"{what}: a block of another repository")
    output = blake3.keyed(keys.epoch_key(header.epoch), header.encoded[:COMMITTED_BYTES], 64)
    key, commitment = output[:32], output[32:]
    committed = hmac.compare_digest(commitment, header.commitment)
    require(committed, f"{what}: the key commitment does not hold")
    cipher = AESGCM(key) if header.suite == AES_256_GCM else ChaCha20Poly1305(key)
    try:
        payload = cipher.decrypt(bytes(12), block.payload, header.encoded)
    except InvalidTag:
        raise Damage(f"{what}: the seal is broken") from None
    return _unpacked(payload, what)


def _unpacked(payload: bytes, what: str) -> Fields:
    fields = Fields(payload, f"{what}: payload")
    compression = fields.code([RAW, ZSTD], "compression")
    body_bytes, unpacked_bytes = fields.unsigned(4), fields.unsigned(4)
    require(unpacked_bytes <= UNPACKED_MAX_BYTES, f"{what}: {unpacked_bytes} unpacked bytes")
    body = fields.take(body_bytes)
    padded = _padded_bytes(PAYLOAD_FRONT_BYTES + body_bytes)
    require(len(payload) == padded, f"{what}: {len(payload)} bytes where padding gives {padded}")
    require(not any(fields.take(fields.left())), f"{what}: padding that is not zero")
    unpacked = body if compression == RAW else _decompressed(body, unpacked_bytes, what)
    require(len(unpacked) == unpacked_bytes, f"{what}: another unpacked length")
    return Fields(unpacked, f"{what}: unpacked")


def _padded_bytes(length: int) -> int:
    """The Padmé length."""
    if length <= PADDED_MIN_BYTES:
        return PADDED_MIN_BYTES
    exponent = length.bit_length() - 1
    step = 1 << (exponent - exponent.bit_length())
    return -(-length // step) * step


def _decompressed(body: bytes, length: int, what: str) -> bytes:
    try:
        frame = zstandard.get_frame_parameters(body)
        plain_frame = (
            frame.content_size == zstandard.CONTENTSIZE_UNKNOWN
            and not frame.has_checksum
            and frame.dict_id == 0
        )
        require(plain_frame, f"{what}: a zstd frame with checksum, content size or dictionary")
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        unpacked = bytearray()
        for at in range(0, len(body), ZSTD_STEP_BYTES):
            require(not decompressor.eof, f"{what}: bytes behind the zstd frame")
            unpacked += decompressor.decompress(body[at : at + ZSTD_STEP_BYTES])
            require(len(unpacked) <= length, f"{what}: more unpacked bytes than declared")
    except zstandard.ZstdError as error:
        raise Damage(f"{what}: {error}") from None
    ended = decompressor.eof and not decompressor.unused_data
    require(ended, f"{what}: not exactly one zstd frame")
    return bytes(unpacked)
