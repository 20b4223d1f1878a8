"""Reading stored structures field by field, and the one error for whatever is not as it should be.

Chapter 1 of docs/format.md: nothing is believed before it was compared with its limit and with the
bytes that are there, and nothing may follow the end.
"""

from collections.abc import Iterable
from pathlib import Path

VARINT_MAX_BYTES = 10


class Damage(Exception):
    """Something stored is missing or is not what was stored."""


def require(condition: bool, complaint: str) -> None:
    """Refuses what is not as chapter 1 and the field's own chapter want it."""
    if not condition:
        raise Damage(complaint)


def stored(path: Path) -> bytes:
    """The bytes of a file that every repository has."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Damage(f"{path}: missing") from None


class Fields:
    """A structure that is read from its front to its end; `what` names it in errors."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.what = what
        self.at = 0

    def left(self) -> int:
        """How many bytes are there still."""
        return len(self.data) - self.at

    def take(self, length: int) -> bytes:
        """The next bytes."""
        require(length <= self.left(), f"{self.what}: cut short at byte {self.at}")
        self.at += length
        return self.data[self.at - length : self.at]

    def unsigned(self, length: int) -> int:
        """A little-endian number of that many bytes."""
        return int.from_bytes(self.take(length), "little")

    def signed(self, length: int) -> int:
        """The same as two's complement."""
        return int.from_bytes(self.take(length), "little", signed=True)

    def varint(self, limit: int = 2**64 - 1) -> int:
        """A LEB128 number, in its shortest form and not over its limit."""
        value = 0
        for place in range(VARINT_MAX_BYTES):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                shortest = byte > 0 or place == 0
                require(shortest, f"{self.what}: a number is not in its shortest form")
                require(value <= limit, f"{self.what}: {value} is over its limit of {limit}")
                return value
        raise Damage(f"{self.what}: a number has no end")

    def difference(self) -> int:
        """A zigzag number."""
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def string(self, limit: int) -> bytes:
        """A varint length and its bytes."""
        return self.take(self.varint(limit))

    def text(self, length: int) -> str:
        """The next bytes, which must be UTF-8."""
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise Damage(f"{self.what}: a text is not UTF-8") from None

    def strings(self, count_limit: int, limit: int) -> list[bytes]:
        """A varint count and its strings."""
        return [self.string(limit) for _ in range(self.varint(count_limit))]

    def texts(self, count_limit: int, limit: int) -> list[str]:
        """The same of UTF-8."""
        return [self.text(self.varint(limit)) for _ in range(self.varint(count_limit))]

    def constant(self, value: bytes, name: str) -> None:
        """Bytes that can only be these: magics, versions, reserved fields."""
        found = self.take(len(value))
        require(found == value, f"{self.what}: {name} is {found.hex()}, not {value.hex()}")

    def code(self, known: Iterable[int], name: str) -> int:
        """One byte that must be one of the known ones."""
        value = self.unsigned(1)
        require(value in known, f"{self.what}: {name} {value} is unknown")
        return value

    def end(self) -> None:
        """Refuses bytes that follow."""
        require(self.left() == 0, f"{self.what}: {self.left()} bytes after its end")
