"""BLAKE3, which Python's standard library lacks: hash, keyed hash, key derivation, longer output.

Written from the specification (https://github.com/BLAKE3-team/BLAKE3-specs). Python pays by the
operation and hardly by the digit, so chunks are compressed side by side: each word of the state is
one large integer in which every chunk has a lane of 64 bits, of which the word takes the lower 32.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache

Words = Sequence[int]

IV = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
    0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
COLUMNS_AND_DIAGONALS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)
ROUNDS = 7
BLOCK_BYTES = 64
CHUNK_BYTES = 1024
WORDS_PER_CHUNK = CHUNK_BYTES // 4
# More lanes do not pay: the integers no longer fit the processor's nearest cache.
MAX_LANES = 256

CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
KEYED_HASH, DERIVE_KEY_CONTEXT, DERIVE_KEY_MATERIAL = 16, 32, 64


def digest(data: bytes) -> bytes:
    """The hash, 32 bytes."""
    return _output(IV, 0, data, 32)


def keyed(key: bytes, data: bytes, length: int = 32) -> bytes:
    """The hash with a key of 32 bytes, extended to `length` bytes."""
    return _output(struct.unpack("<8I", key), KEYED_HASH, data, length)


def derive_key(context: str, material: bytes) -> bytes:
    """A key of 32 bytes for one purpose."""
    context_key = _output(IV, DERIVE_KEY_CONTEXT, context.encode(), 32)
    return _output(struct.unpack("<8I", context_key), DERIVE_KEY_MATERIAL, material, 32)


def _output(key: Words, mode: int, data: bytes, length: int) -> bytes:
    """The root's output: of the only chunk, or of the parent of everything."""
    values = _whole_chunks(key, mode, data)
    value, block, block_bytes, flags = _last_block(key, mode, data, len(values))
    if values:
        values.append(_compress(value, block, len(values), block_bytes, flags, 1)[:8])
        # Neighbours are joined level by level; who has no neighbour goes up as it is.
        while len(values) > 2:
            values = _parents(key, mode, values)
        value, block, block_bytes, flags = key, values[0] + values[1], BLOCK_BYTES, mode | PARENT
    output = b""
    for counter in range(-(-length // BLOCK_BYTES)):
        words = _compress(value, block, counter, block_bytes, flags | ROOT, 1)
        output += struct.pack("<16I", *words)
    return output[:length]


def _whole_chunks(key: Words, mode: int, data: bytes) -> list[list[int]]:
    """The chaining values of all chunks but the last, which may be cut short."""
    count = max(len(data) - 1, 0) // CHUNK_BYTES
    values: list[list[int]] = []
    for first in range(0, count, MAX_LANES):
        lanes = min(MAX_LANES, count - first)
        words = struct.unpack_from(f"<{lanes * WORDS_PER_CHUNK}I", data, first * CHUNK_BYTES)
        counters = _spread(range(first, first + lanes))
        ones = _ones(lanes)
        value: Words = [word * ones for word in key]
        for at in range(0, WORDS_PER_CHUNK, 16):
            flags = mode
            flags |= CHUNK_START if at == 0 else 0
            flags |= CHUNK_END if at == WORDS_PER_CHUNK - 16 else 0
            block = [_spread(words[at + word :: WORDS_PER_CHUNK]) for word in range(16)]
            value = _compress(value, block, counters, BLOCK_BYTES, flags, lanes)[:8]
        values += _gather(value, lanes)
    return values


def _last_block(
    key: Words, mode: int, data: bytes, number: int
) -> tuple[Words, Words, int, int]:
    """What is left to compress of the last chunk: value so far, block, its length, flags."""
    chunk = data[number * CHUNK_BYTES :]
    value, flags, at = key, mode | CHUNK_START, 0
    while len(chunk) - at > BLOCK_BYTES:
        block = struct.unpack_from("<16I", chunk, at)
        value, flags = _compress(value, block, number, BLOCK_BYTES, flags, 1)[:8], mode
        at += BLOCK_BYTES
    rest = chunk[at:]
    block = struct.unpack("<16I", rest.ljust(BLOCK_BYTES, b"\0"))
    return value, block, len(rest), flags | CHUNK_END


def _parents(key: Words, mode: int, values: list[list[int]]) -> list[list[int]]:
    pairs = len(values) // 2
    children = [_spread(words) for words in zip(*values[0 : 2 * pairs : 2])]
    children += [_spread(words) for words in zip(*values[1 : 2 * pairs : 2])]
    ones = _ones(pairs)
    spread_key = [word * ones for word in key]
    joined = _compress(spread_key, children, 0, BLOCK_BYTES, mode | PARENT, pairs)[:8]
    return _gather(joined, pairs) + values[2 * pairs :]


def _compress(
    value: Words, block: Words, counters: int, block_bytes: int, flags: int, lanes: int
) -> list[int]:
    """The compression function, on as many lanes; `counters` has one below 2^32 in each."""
    ones = _ones(lanes)
    mask = 0xFFFFFFFF * ones
    v = [*value, *(word * ones for word in IV[:4]), counters, 0, block_bytes * ones, flags * ones]
    m = list(block)
    for round_number in range(ROUNDS):
        for place, (i, j, k, l) in enumerate(COLUMNS_AND_DIAGONALS):
            a, b, c, d = v[i], v[j], v[k], v[l]
            a = (a + b + m[2 * place]) & mask
            d ^= a
            d = (d >> 16 | d << 16) & mask
            c = (c + d) & mask
            b ^= c
            b = (b >> 12 | b << 20) & mask
            a = (a + b + m[2 * place + 1]) & mask
            d ^= a
            d = (d >> 8 | d << 24) & mask
            c = (c + d) & mask
            b ^= c
            b = (b >> 7 | b << 25) & mask
            v[i], v[j], v[k], v[l] = a, b, c, d
        if round_number < ROUNDS - 1:
            m = [m[source] for source in PERMUTATION]
    upper = v[8:]
    return [a ^ b for a, b in zip(v[:8], upper)] + [a ^ b for a, b in zip(upper, value)]


@lru_cache
def _ones(lanes: int) -> int:
    return _spread([1] * lanes)


def _spread(words: Words) -> int:
    """One integer with a word in each lane."""
    return int.from_bytes(struct.pack(f"<{len(words)}Q", *words), "little")


def _gather(words: Words, lanes: int) -> list[list[int]]:
    """For each lane the list of its words."""
    columns = [struct.unpack(f"<{lanes}Q", word.to_bytes(8 * lanes, "little")) for word in words]
    return [list(lane) for lane in zip(*columns)]
