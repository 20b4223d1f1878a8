"""A call: 50 packets of 2,500 bytes a second, one way, each with the time at which it left.

    python3 call.py receive ADDRESS SECONDS     prints "ready PORT", then a line of JSON: how many milliseconds each packet took
    python3 call.py send ADDRESS PORT SECONDS   prints how many it sent

Both ends have the same clock, since they are on one computer.
"""

import json
import socket
import struct
import sys
import time

PACKET_BYTES = 2500
INTERVAL_S = 0.02


def receive(address, seconds):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((address, 0))
    print("ready", end.getsockname()[1], flush=True)
    took = []
    # The first packet begins it; the last ones may be on their way for a while.
    end.settimeout(30)
    until = None
    while until is None or time.monotonic() < until:
        try:
            packet = end.recv(PACKET_BYTES + 1)
        except TimeoutError:
            break
        now = time.monotonic()
        until = until or now + seconds + 1
        end.settimeout(max(0.01, until - now))
        took.append((now - struct.unpack_from("d", packet)[0]) * 1000)
    print(json.dumps(took), flush=True)


def send(address, port, seconds):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.connect((address, port))
    begun, sent = time.monotonic(), 0
    while sent * INTERVAL_S < seconds:
        time.sleep(max(0, begun + sent * INTERVAL_S - time.monotonic()))
        end.send(struct.pack("d", time.monotonic()) + bytes(PACKET_BYTES - 8))
        sent += 1
    print(sent, flush=True)


if sys.argv[1] == "receive":
    receive(sys.argv[2], float(sys.argv[3]))
else:
    send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
