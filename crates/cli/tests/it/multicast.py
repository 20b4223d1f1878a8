"""Says things by multicast DNS that no holdall would.

    multicast.py servers COUNT     announces so many servers of hostile names, again and again
    multicast.py flood COUNT       answers what nobody asked: so many addresses of so many names, once

Prints "ready" once it has said all of it for the first time. The first runs until it is ended.
"""

import socket
import struct
import sys
import time

GROUP, PORT = "224.0.0.251", 5353
SERVICE = ["_holdall", "_tcp", "local"]
A, PTR, TXT, SRV = 1, 12, 16, 33
LIVES_S = 4500
# Turns letters around, moves the cursor, ends the line, and is not seen.
UNSEEN = "\u202eattic\x1b[2J\r\n  10.0.0.1:7443\u200b"
FINGERPRINT = "-".join(["abcd"] * 8)


def name(labels: list[str]) -> bytes:
    """A name of DNS."""
    encoded = [label.encode() for label in labels]
    return b"".join(bytes([len(label)]) + label for label in encoded) + b"\0"


def record(owner: list[str], kind: int, data: bytes) -> bytes:
    """An answer."""
    return name(owner) + struct.pack("!HHIH", kind, 1, LIVES_S, len(data)) + data


def answer(records: list[bytes]) -> bytes:
    """A message that answers what nobody has to have asked."""
    return struct.pack("!HHHHHH", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)


def server(number: int) -> bytes:
    """Announces one."""
    label, host = [f"x{number}", *SERVICE], [f"h{number}", "local"]
    texts = ["v=1", f"id={FINGERPRINT}", f"name={number:04}{UNSEEN}"]
    text = b"".join(bytes([len(one.encode())]) + one.encode() for one in texts)
    return answer([
        record(SERVICE, PTR, name(label)),
        record(label, SRV, struct.pack("!HHH", 0, 0, 7443) + name(host)),
        record(label, TXT, text),
        record(host, A, bytes([10, 77, number // 250 + 1, number % 250 + 1])),
    ])


def flood(first: int, count: int) -> bytes:
    """Addresses of some names."""
    hosts = range(first, first + count)
    return answer([record([f"f{host}", "local"], A, bytes([10, 9, 8, 7])) for host in hosts])


def main() -> None:
    """Says it."""
    what, count = sys.argv[1], int(sys.argv[2])
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[3]))
    out.bind(("", PORT))
    is_told = False
    while True:
        packets = map(server, range(count)) if what == "servers" else (flood(at, 30) for at in range(0, count, 30))
        for packet in packets:
            out.sendto(packet, (GROUP, PORT))
            # Not faster than it is read.
            time.sleep(0.0002)
        if not is_told:
            print("ready", flush=True)
            is_told = True
        if what == "flood":
            return


main()
