"""Reading a recovery kit, the page of text that opens a repository without its password.

Chapter 15 of docs/format.md. Every line has a check group, so that a typing error is told by the
line that has it.
"""

import re
from dataclasses import dataclass

import blake3
from age import WrongKey

KIT_MAX_BYTES = 16 * 1024
FREE_TEXT = ("Server", "Name")
ONCE = ("Version", "Identity", "Name", "Repository", "Fingerprint", "Secret")
ORDER = ("Version", "Server", "Identity", "Name", "Repository", "Fingerprint", "Secret")
REQUIRED = ("Version", "Name", "Repository", "Fingerprint", "Secret", "Check")
LABELS = {label.lower(): label for label in (*ORDER, "Check")}
END = "end of the kit"
MAX_SERVERS = 16

LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
BECH32M = 0x2BC830A3
SECRET_PREFIX = "holdall"


class BadKit(WrongKey):
    """The text is no recovery kit, or was not copied as it was printed."""


@dataclass(frozen=True)
class Kit:
    """What the page says that matters to a reader of a directory."""

    repository: bytes
    fingerprint: str
    secret: bytes


def parse(text: str) -> Kit:
    """Reads the page."""
    if len(text.encode()) > KIT_MAX_BYTES:
        raise BadKit("the recovery kit is too long")
    values = _values(text)
    for label in REQUIRED:
        if label not in values:
            raise BadKit(f"the recovery kit has no line {label!r}")
    if any(len(values.get(label, [])) > 1 for label in (*ONCE, "Check")):
        raise BadKit("the recovery kit has a line twice")
    if len(values.get("Server", [])) > MAX_SERVERS:
        raise BadKit("the recovery kit has too many servers")
    _check(values)
    if values["Version"] != ["1"]:
        raise BadKit("the recovery kit is of another version")
    repository = values["Repository"][0]
    if not re.fullmatch("[0-9a-f]{32}", repository):
        raise BadKit("the recovery kit names no repository")
    secret = _bech32m(values["Secret"][0])
    return Kit(bytes.fromhex(repository), values["Fingerprint"][0].replace("-", ""), secret)


def _values(text: str) -> dict[str, list[str]]:
    """The values of each label, normalised."""
    raw: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.strip().lower() == END:
            break
        label, colon, value = line.partition(":")
        known = LABELS.get(label.strip().lower())
        if colon and known and (raw or known == "Version"):
            raw.append((known, value))
        elif raw:
            # A line that was broken goes on here.
            raw[-1] = (raw[-1][0], raw[-1][1] + " " + line)
    values: dict[str, list[str]] = {}
    for label, value in raw:
        words = value.split()
        normal = " ".join(words) if label in FREE_TEXT else "".join(words).lower()
        values.setdefault(label, []).append(normal)
    return values


def _check(values: dict[str, list[str]]) -> None:
    """Compares the check groups, one for each line."""
    lines = [(label, value) for label in ORDER for value in values.get(label, [])]
    groups = values["Check"][0]
    if len(groups) != 4 * len(lines):
        raise BadKit("the recovery kit has lines without a check group, or the other way round")
    for number, (label, value) in enumerate(lines):
        line = label.encode() + b"\0" + value.encode()
        group = blake3.derive_key("holdall v1 recovery kit check", line)[:2].hex()
        if groups[4 * number : 4 * number + 4] != group:
            raise BadKit(f"the line {label!r} of the recovery kit has a typing error")


def _bech32m(text: str) -> bytes:
    """The 32 bytes of a Bech32m text (BIP 350) with the kit's prefix."""
    prefix, one, letters = text.rpartition("1")
    if not one or prefix != SECRET_PREFIX or any(letter not in LETTERS for letter in letters):
        raise BadKit("the recovery kit's secret is no secret")
    numbers = [LETTERS.index(letter) for letter in letters]
    upper, lower = [ord(letter) >> 5 for letter in prefix], [ord(letter) & 31 for letter in prefix]
    if _polymod([*upper, 0, *lower, *numbers]) != BECH32M:
        raise BadKit("the recovery kit's secret has a typing error")
    bits = "".join(f"{number:05b}" for number in numbers[:-6])
    if len(bits) != 260 or "1" in bits[256:]:
        raise BadKit("the recovery kit's secret has another length")
    return int(bits[:256], 2).to_bytes(32, "big")


def _polymod(numbers: list[int]) -> int:
    checksum = 1
    for number in numbers:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ number
        for bit, generator in enumerate(GENERATORS):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum
