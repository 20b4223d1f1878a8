#!/usr/bin/env python3
"""Makes golden/wire.txt and golden/files.txt anew: what fuzzing begins with.

    vectors.py

One of each body and message that goes over the wire, and of each file that holdall keeps for
itself, with all checksums right. They are written from the documents and from what the modules say
at their heads, not with the code that reads them. A line begins with the name of the fuzz target
that it is for. Keys, ids and numbers are those that the targets know.
"""

import base64
import json
import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True
GOLDEN = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(GOLDEN / "decoder"))

import blake3  # noqa: E402

REPOSITORY = b"\x01" * 16
PACK = b"\x03" * 32
NUMBER = 7
TOKEN, NONCE = b"\x03" * 16, b"\x07" * 16
SERIES_ROOT = b"\xb1" * 32
LEAF_KEY = b"\x03" * 32
TIMES = {"receive_seconds": 0.25, "queue_seconds": 0.0, "cpu_seconds": 0.5, "disk_seconds": 1.5}

PAGE_BYTES, PAGE_ENTRIES_BYTES = 4096, 85 * 48
# Of the checksum of a page: the multipliers of its four lanes.
ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def ids(*numbers: int) -> bytes:
    """Ids whose bytes are all the same."""
    return b"".join(bytes([number]) * 32 for number in numbers)


def hexes(number: int, length: int = 32) -> str:
    """The text of such an id."""
    return (bytes([number]) * length).hex()


def checked(data: bytes) -> bytes:
    """With the hash of all before it at its end."""
    return data + blake3.digest(data)


def text(value: object) -> bytes:
    """JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def base32(data: bytes) -> str:
    """In lower case, without padding."""
    return base64.b32encode(data).decode().lower().rstrip("=")


def frames(*parts: bytes) -> bytes:
    """Each behind its length."""
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def control() -> dict[str, bytes]:
    """Bodies of JSON."""
    former = {"machine": hexes(2, 16), "repository": "attic"}
    request = {"secret": "a" * 26, "name": "attic", "again": former}
    answer = {"machine": hexes(2, 16), "name": "attic", "repository": "attic", "server": "nas"}
    usage = ("stored_bytes", "packs", "blocks", "objects", "records", "quota_bytes")
    return {
        "pairing request": text(request),
        "pairing answer": text(answer),
        "short code request": text({"message": base32(b"A" + b"\x58" * 32)}),
        "short code answer": text({"message": base32(b"B" + b"\x58" * 32)}),
        "short code confirmation": text({"confirmation": base32(b"\x04" * 32)}),
        "sealed invite": text({"confirmation": base32(b"\x05" * 32), "invite": base32(b"\x06" * 60)}),
        "times": text(TIMES),
        "usage": text({name: number for number, name in enumerate(usage)}),
        "session request": text({"purpose": "backup", "parents": [hexes(4)]}),
        "session answer": text({"session": hexes(5, 16), "head": hexes(6), "sequence": 7}),
        "error": text({"error": "unknown-machine", "message": "no machine has that key"}),
    }


def deletion() -> dict[str, bytes]:
    """Deletions and compacting."""
    waiting = struct.pack("<QqqQI", 3, -5, 1 << 60, 7, 2) + ids(8, 9)
    pruned = (
        "stored_before_bytes", "stored_after_bytes", "deleted_packs", "deleted_bytes",
        "condemned_packs", "condemned_bytes", "moved_bytes", "waiting_packs", "waiting_bytes",
        "next_due_ns", "checkpoints_forgotten",
    )  # fmt: skip
    report = text({name: number for number, name in enumerate(pruned)} | {"alarm": "a loss"})
    return {
        "deletion request": ids(9) + ids(1, 2),
        "announcement": struct.pack("<Bq", 1, 11) + waiting,
        "deletions": waiting + struct.pack("<QqqQI", 4, 0, 5, 0, 0),
        "deletion": waiting,
        "compaction request": ids(9) + struct.pack("<QQ", 5, 1 << 40),
        "sparse blocks": sparse(1, 6, ids(1, 2)) + sparse(9, 2, ids(3)),
        "compaction": struct.pack("<Q", 7) + waiting,
        "prune report": struct.pack("<I", len(report)) + report + ids(10) + struct.pack("<q", 12),
    }


def sparse(arrival: int, objects: int, living: bytes) -> bytes:
    """A block that is mostly dead."""
    return struct.pack("<QQI", arrival, objects, len(living) // 32) + living


def frame_bodies() -> dict[str, bytes]:
    """Bodies of frames and of ids."""
    damage = text({"kind": "pack", "pack": "p", "reason": "torn"})
    record = struct.pack("<Q", 3) + b"stored"
    return {
        "new repository": frames(b"config", b"wrappings"),
        "description": frames(b"config", b"wrappings", b"\x02" * 16, ids(3)),
        "commit answer": b"\x01" + ids(4, 5),
        "records": struct.pack("<Q", 9) + frames(record, record),
        "fetched": frames(text(TIMES), b"one", b"two"),
        "block page": struct.pack("<BQI", 1, 8, 1) + frames(damage, b"one", b"two"),
        "ids": ids(1, 2, 3),
    }


def scrub() -> bytes:
    """A scrub's answer in pieces of 64 bytes."""
    totals = {"packs": 1, "blocks": 2, "objects": 3, "snapshots": 4, "bytes": 5}
    damages = (
        {"kind": "block", "block": hexes(1), "pack": hexes(2), "reason": "torn"},
        {"kind": "record", "record": "r", "reason": "torn"},
        {"kind": "missing", "object": hexes(3), "record": hexes(4)},
    )
    lines = [{"progress": {"bytes_done": 1, "bytes_total": 2}}]
    lines += [{"damaged": damage} for damage in damages]
    lines += [{"done": totals}]
    return b"\x40" + b"\n".join(text(line) for line in lines) + b"\n"


def lab() -> dict[str, bytes]:
    """What the lab's listener and its callers say to each other."""
    asked = struct.pack("<BBBxII20x", 1, 1, 2, 1500, 65536)
    key = blake3.derive_key("holdall v1 lab listener token", TOKEN)
    return {
        "greeting": b"hldlab" + struct.pack("<H", 2) + NONCE + bytes(8),
        "ask": blake3.keyed(key, NONCE + asked) + asked,
        "answer": (b"\x01\x07no room").ljust(64, b"\0"),
        "counted": b"hldcount" + struct.pack("<7Q", 5, 9, 0, 1, 2, 3, 4),
        "token": TOKEN.hex().encode(),
    }


def lab_report() -> bytes:
    """A report of the lab."""
    latency = {"p50": 1, "p90": 2, "p99": 3, "p99.9": 4}
    row = {
        "operation": "random read", "block_bytes": 4096, "file_bytes": None, "queue_depth": 32,
        "jobs": 4, "direct": True, "end_fsync": False, "duration_seconds": 1.5,
        "bytes_per_second": 4.5e8, "operations_per_second": 1.1e5, "latency_ns": latency,
    }  # fmt: skip
    rates = {"bytes_per_second": 2.5e8, "items_per_second": 10.0}
    fact = {"name": "kernel", "value": "6.1"}
    return text({
        "format": "holdall-lab-report", "version": 1, "command": "lab disk", "made": "today",
        "circumstances": [fact], "facts": [fact], "measurements": [row],
        "ladder": [{"name": "source read", "reached": True, "used": 0.5, **rates}],
        "timeline": [{"seconds": 0.5, **rates}, {"seconds": 1.5, **rates}], "notes": ["a note"],
    })  # fmt: skip


def header(table: bytes) -> bytes:
    """The header of a block of chunks with that table."""
    clear = b"HBlk" + bytes([1, 1, 2, 0]) + REPOSITORY
    clear += struct.pack("<IIII", 1, len(table), 100, 0)
    return clear + b"\x5a" * 32 + blake3.digest(table) + b"\xcc" * 32


def journal() -> bytes:
    """A journal of chunks with two entries, each of which was durable before the next."""
    key = b"\x6b" * 32
    out = checked(b"HJnl" + bytes([2, 2, 0, 0]) + REPOSITORY + key)
    for number in (1, 2):
        table = struct.pack("<I", number) + ids(*range(1, number + 1))
        length = 4 + 24 + 32 + 136 + len(table) + 32
        entry = struct.pack("<IQQQ", length, len(out), 10 + number, 100 * number) + ids(number)
        entry += header(table) + table
        out += entry + blake3.keyed(key, entry)
    return out


def manifest() -> bytes:
    """The manifest of an index of one pack and one run."""
    pack = PACK + struct.pack("<BQQQQ", 1, 2, 9, 1000, 3)
    run = struct.pack("<QQQQ", 5, 65, (1 << 64) - 1, 1)
    tail = struct.pack("<QIB", 12, 1, 3)
    lists = [struct.pack("<I", 1) + one for one in (pack, run, tail)]
    front = b"HIdx" + bytes([3, 0, 0, 0]) + REPOSITORY + struct.pack("<Q", 7)
    return checked(front + b"".join(lists) + struct.pack("<Q", 3))


def run_front(entries: int) -> bytes:
    """What a run begins with."""
    return checked(b"HRun" + bytes([1, 0, 0, 0]) + REPOSITORY + struct.pack("<QQ", NUMBER, entries))


def run() -> bytes:
    """A run of two entries: one page, a fence of one, and the smallest filter."""
    wanted = (0x11, 0x22)
    page = b"".join(ids(number) + struct.pack("<QII", 5, 0, number) for number in wanted)
    page = page.ljust(PAGE_ENTRIES_BYTES, b"\0")
    page += page_checksum(NUMBER, 0, page)
    bits = 0
    for number in wanted:
        chosen = int.from_bytes(ids(number)[24:], "little")
        for probe in range(5):
            bits |= 1 << (chosen >> 9 * probe) % 512
    end = ids(wanted[0])[:8] + bits.to_bytes(64, "little")
    return run_front(2).ljust(PAGE_BYTES, b"\0") + page + checked(end)


def page_checksum(run_number: int, page: int, entries: bytes) -> bytes:
    """That of a page whose entries take a multiple of 8 bytes."""
    lanes = [run_number, page, ODD[0], len(entries)]
    lanes = [step(lane, 0, odd) for lane, odd in zip(lanes, ODD)]
    # What is no whole 32 bytes is taken last, filled up with zeros; nothing left is 32 zeros.
    whole = entries[: len(entries) // 32 * 32] + entries[len(entries) // 32 * 32 :].ljust(32, b"\0")
    for words in struct.iter_unpack("<4Q", whole):
        lanes = [step(lane, word, odd) for lane, word, odd in zip(lanes, words, ODD)]
    a, b, c, d = lanes
    low = step(a, rotated(b, 23), ODD[2]) ^ step(c, rotated(d, 41), ODD[3])
    high = step(b, rotated(c, 11), ODD[0]) ^ step(d, rotated(a, 7), ODD[1])
    return struct.pack("<QQ", low, high)


def step(lane: int, word: int, odd: int) -> int:
    """One word into one lane."""
    return rotated((lane ^ word) * odd & (1 << 64) - 1, 29)


def rotated(word: int, by: int) -> int:
    """To the left, in 64 bits."""
    return (word << by | word >> 64 - by) & (1 << 64) - 1


def marks() -> dict[str, bytes]:
    """Marks and sessions."""
    zeros = bytes([1, 0, 0, 0])
    session = b"HSes" + bytes([1, 1, 1, 0]) + b"\x05" * 16 + b"\x02" * 16
    return {
        "condemn mark": checked(b"HCon" + zeros + PACK + struct.pack("<qQ", 5, 7)),
        "superseded mark": checked(b"HSup" + zeros + struct.pack("<QIQQ", NUMBER, 2, 1, 3)),
        "session": checked(session + struct.pack("<QqH", 9, 1 << 60, 2) + ids(1, 2)),
    }


def parity() -> bytes:
    """The head of the parity of a pack of two shards and a byte."""
    front = b"HPar" + bytes([1, 0, 0, 0]) + PACK + struct.pack("<QI", 2 * 65536 + 1, 1)
    return checked(front + ids(1, 2, 3, 4))


def words() -> dict[str, bytes]:
    """What a repository keeps in words."""
    probes = ("fsync-file", "fsync-directory", "link", "rename-new", "create-new", "lock")
    answers = "".join(f"{name} {'no' if name == 'link' else 'yes'}\n" for name in probes)
    scrubbed = f"begun 7\nbefore 5\nread {PACK.hex()}\ndamaged tails 2 blocks are wrong\n"
    lease = "host attic\nprocess x pid:[1] 7 7\nsince 100\n"
    return {
        "probes": f"holdall probes, version 1\nfile-system 6969\n{answers}".encode(),
        "scrub round": f"holdall scrub, version 1\n{scrubbed}".encode(),
        "lease": f"holdall lease, version 1\n{lease}".encode(),
    }


def check(data: bytes) -> bytes:
    """What the cache of leaves has behind what only holdall writes."""
    return blake3.keyed(blake3.keyed(LEAF_KEY, b"check"), data)[:16]


def leaves(*numbers: int) -> bytes:
    """A cache of leaves, with one directory in its list."""
    clear, listed = b"hldleaf2" + SERIES_ROOT + struct.pack("<I", 4), b"a\0b/"
    known = [ids(n)[:16] + bytes([n]) * 16 + struct.pack("<I", n) for n in numbers]
    block = b"".join(known)
    counted = struct.pack("<I", len(numbers)) + block + check(block)
    return clear + check(clear + listed) + counted + listed


def caches() -> dict[str, bytes]:
    """The caches of a client."""
    table = struct.pack("<I", 1) + ids(0xC1)
    block = header(table) + table + bytes(100)
    records = b"".join(struct.pack("<QI", at, 6) + b"stored" for at in (3, 7))
    remembered = b"".join(ids(number, 9) + struct.pack("<I", 1000) for number in (1, 2, 3))
    return {
        "nodes": frames(block, block),
        "leaves": leaves(0xB1, 0xB2, 0xC1),
        "records": b"hldrecs1" + records,
        "blocks": b"hldblks1" + struct.pack("<qQQ", 5, 1, 0) + remembered,
    }


def write(name: str, vectors: dict[str, bytes]) -> None:
    """A line for each, in a file of that name."""
    lines = ["# Made by golden/maker/vectors.py, which says what these are."]
    lines += [f"{what} = {data.hex()}" for what, data in vectors.items()]
    (GOLDEN / name).write_text("\n".join(lines) + "\n")


def of(target: str, vectors: dict[str, bytes]) -> dict[str, bytes]:
    """Named for a fuzz target."""
    return {f"{target} {what}": data for what, data in vectors.items()}


def main() -> None:
    """Writes both files."""
    times = ("queue_seconds", "cpu_seconds", "disk_seconds", "process_cpu_seconds")
    written = {"bytes": 5, **{name: 0.5 for name in times}}
    route = f"/api/v1/repositories/attic/records?after=3&limit=9&known={hexes(1)}"
    write("wire.txt", {
        **of("lab_messages", lab()),
        **of("lab_report", {"report": lab_report()}),
        **of("wire_control", control()),
        **of("wire_deletion", deletion()),
        **of("wire_frames", frame_bodies()),
        **of("wire_lab", {"taken": text({"bytes": 5}), "written": text(written)}),
        **of("wire_probe", {
            "probes": ids(1, 2) + struct.pack("<I", 3),
            "proofs": b"\x02" + struct.pack("<H3sH", 3, b"abc", 0),
        }),
        **of("wire_route", {"records": route.encode()}),
        **of("wire_scrub", {"answer": scrub()}),
    })  # fmt: skip
    write("files.txt", {
        **of("cache_files", caches()),
        **of("stored_index", {"manifest": manifest(), "run front": run_front(2), "run": run()}),
        **of("stored_journal", {"journal": journal()}),
        **of("stored_marks", marks()),
        **of("stored_parity", {"head": parity()}),
        **of("stored_words", words()),
    })  # fmt: skip


if __name__ == "__main__":
    main()
