"""From a password or a recovery kit to the repository's keys.

Chapters 8 and 9 of docs/format.md: the configuration says who the owner is, the wrapping set holds
the encrypted copies of the master secret, and the secret in turn proves the owner.
"""

from dataclasses import dataclass
from pathlib import Path

import age
import blake3
import kit
from fields import Fields, require, stored
from keys import SIGNATURE_BYTES, Keys, check_signature, public_key

CONFIGURATION_BYTES = 128
CHUNKER = 2
INLINE_MAX_BYTES = 4096
WRAPPINGS_MAX = 64
WRAPPING_MAX_BYTES = 16 * 1024
PASSPHRASE, RECOVERY_KIT, OWN_KEY = 1, 2, 3
SECRET_BYTES = 32


@dataclass(frozen=True)
class Configuration:
    """What a reader needs of the configuration."""

    repository: bytes
    owner: bytes


@dataclass(frozen=True)
class Wrapping:
    """One encrypted copy of the master secret."""

    kind: int
    label: str
    recovery_identity: bytes
    age_file: bytes


class Lock:
    """A closed repository: its signed configuration and its newest wrapping set."""

    def __init__(self, directory: Path) -> None:
        self.configuration = _read_configuration(stored(directory / "config"))
        self.wrappings = _read_wrappings(directory / "wrappings", self.configuration)

    def open_with_password(self, password: bytes) -> Keys:
        """The keys, by the first wrapping that this password opens."""
        for wrapping in self._of_kind(PASSPHRASE):
            try:
                return self._keys(_secret(age.open_with_passphrase(wrapping.age_file, password)))
            except age.WrongKey:
                continue
        raise age.WrongKey("wrong password")

    def open_with_kit(self, page: kit.Kit) -> Keys:
        """The keys, by the wrapping that is the kit's."""
        keys = self._keys(self.master_secret_by_kit(page))
        require(keys.fingerprint() == page.fingerprint, "the kit's fingerprint is another")
        return keys

    def master_secret_by_kit(self, page: kit.Kit) -> bytes:
        """What the wrapping of the kit holds."""
        if page.repository != self.configuration.repository:
            raise age.WrongKey("the recovery kit is of another repository")
        identity = blake3.derive_key("holdall v1 recovery age identity", page.secret)
        signer = public_key(blake3.derive_key("holdall v1 recovery signing key", page.secret))
        for wrapping in self._of_kind(RECOVERY_KIT):
            if wrapping.recovery_identity == signer:
                return _secret(age.open_with_identity(wrapping.age_file, identity))
        raise age.WrongKey("the recovery kit opens nothing here")

    def _of_kind(self, kind: int) -> list[Wrapping]:
        return [wrapping for wrapping in self.wrappings if wrapping.kind == kind]

    def _keys(self, master_secret: bytes) -> Keys:
        keys, configuration = Keys(master_secret), self.configuration
        require(
            (keys.repository, keys.owner) == (configuration.repository, configuration.owner),
            "configuration: of another master secret",
        )
        return keys


def _secret(unwrapped: bytes) -> bytes:
    """The master secret in an age file."""
    fields = Fields(unwrapped, "master secret")
    fields.constant(b"HMst\1", "magic and version")
    secret = fields.take(SECRET_BYTES)
    fields.end()
    return secret


def _read_configuration(data: bytes) -> Configuration:
    fields = Fields(data, "configuration")
    fields.constant(b"HCfg\2", "magic and version")
    fields.code([CHUNKER], "chunker")
    fields.code([1, 2], "suite")
    fields.code(range(1, 9), "leaf bits")
    repository = fields.take(16)
    require(fields.unsigned(2) <= INLINE_MAX_BYTES, "configuration: inline limit")
    fields.constant(bytes(2), "reserved field")
    fields.unsigned(4)
    owner = fields.take(32)
    check_signature("config", owner, data[: fields.at], fields.take(SIGNATURE_BYTES))
    fields.end()
    return Configuration(repository, owner)


def _read_wrappings(folder: Path, configuration: Configuration) -> list[Wrapping]:
    """The wrappings of the highest generation."""
    names = [path.name for path in folder.glob("*") if _is_generation(path.name)]
    require(bool(names), "wrappings: there are none")
    data = stored(folder / max(names))
    fields = Fields(data, f"wrappings/{max(names)}")
    fields.constant(b"HWrp\2", "magic and version")
    count = fields.code(range(WRAPPINGS_MAX + 1), "count")
    fields.constant(bytes(2), "reserved field")
    fields.constant(configuration.repository, "repository")
    require(fields.unsigned(8) == int(max(names), 16), "wrappings: generation and name differ")
    fields.constant(configuration.owner, "owner key")
    wrappings = [_read_wrapping(fields) for _ in range(count)]
    signed = data[: fields.at]
    check_signature("wrappings", configuration.owner, signed, fields.take(SIGNATURE_BYTES))
    fields.end()
    return wrappings


def _read_wrapping(fields: Fields) -> Wrapping:
    kind = fields.code([PASSPHRASE, RECOVERY_KIT, OWN_KEY], "kind")
    label = fields.text(fields.unsigned(1))
    identity = fields.take(32) if kind == RECOVERY_KIT else b""
    length = fields.unsigned(4)
    require(length <= WRAPPING_MAX_BYTES, f"{fields.what}: a wrapping of {length} bytes")
    return Wrapping(kind, label, identity, fields.take(length))


def _is_generation(name: str) -> bool:
    return len(name) == 16 and all(digit in "0123456789abcdef" for digit in name)
