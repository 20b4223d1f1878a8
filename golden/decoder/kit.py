"""Reading a recovery kit, the page of text that opens a repository without its password.

Chapter 15 of docs/format.md. Every line has a check group, so that a typing error is told by the
line that has it.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import bech32
import blake3
from age import WrongKey

KIT_MAX_BYTES = 16 * 1024
WITH_CASE = ("Server", "Name")
# At so many line ends of a name it is tried whether there was a space.
OPEN_ENDS_MAX = 6
ONCE = ("Version", "Identity", "Name", "Repository", "Fingerprint", "Secret")
ORDER = ("Version", "Server", "Identity", "Name", "Repository", "Fingerprint", "Secret", "Key")
VERSIONS = (["1"], ["2"])
REQUIRED = ("Version", "Name", "Repository", "Fingerprint", "Secret", "Check")
LABELS = {label.lower(): label for label in (*ORDER, "Check")}
END = "end of the kit"
MAX_SERVERS = 16

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
    if values["Version"] not in VERSIONS or ("Key" in values) != (values["Version"] == ["2"]):
        raise BadKit("the recovery kit is of another version")
    repository = values["Repository"][0]
    if not re.fullmatch("[0-9a-f]{32}", repository):
        raise BadKit("the recovery kit names no repository")
    try:
        secret = bech32.secret(values["Secret"][0], SECRET_PREFIX, bech32.BECH32M)
    except ValueError as error:
        raise BadKit(f"the recovery kit's secret {error}") from None
    return Kit(bytes.fromhex(repository), values["Fingerprint"][0].replace("-", ""), secret)


def _values(text: str) -> dict[str, list[str]]:
    """The values of each label, normalised, but for the lines of a name."""
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
            raw[-1] = (raw[-1][0], raw[-1][1] + "\n" + line)
    values: dict[str, list[str]] = {}
    for label, value in raw:
        normal = value if label == "Name" else "".join(value.split())
        normal = normal if label in WITH_CASE else normal.lower()
        values.setdefault(label, []).append(normal)
    return values


def _check(values: dict[str, list[str]]) -> None:
    """Compares the check groups, one for each line."""
    lines = [(label, value) for label in ORDER for value in values.get(label, [])]
    groups = values["Check"][0]
    if len(groups) != 4 * len(lines):
        raise BadKit("the recovery kit has lines without a check group, or the other way round")
    for number, (label, value) in enumerate(lines):
        group = groups[4 * number : 4 * number + 4]
        readings = _readings(value) if label == "Name" else [value]
        if all(_group(label, reading) != group for reading in readings):
            raise BadKit(f"the line {label!r} of the recovery kit has a typing error")


def _readings(name: str) -> Iterator[str]:
    """What a name of several lines may be: where one ends there was a space, or none."""
    first, *others = (line.strip() for line in name.split("\n"))
    for joints in itertools.product((" ", ""), repeat=min(len(others), OPEN_ENDS_MAX)):
        pairs = itertools.zip_longest(joints, others, fillvalue=" ")
        yield " ".join((first + "".join(joint + line for joint, line in pairs)).split())


def _group(label: str, value: str) -> str:
    line = label.encode() + b"\0" + value.encode()
    return blake3.derive_key("holdall v1 recovery kit check", line)[:2].hex()
