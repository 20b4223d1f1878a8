"""From a password or a recovery kit to the repository's keys.

Chapters 8 and 9 of docs/format.md: the configuration says who the owner is, the wrapping set holds
the encrypted copies of the key ring, and the ring in turn proves the owner and the epochs.
"""

from dataclasses import dataclass
from pathlib import Path

import age
import bech32
import blake3
import kit
from fields import Damage, Fields, require, stored
from keys import SIGNATURE_BYTES, Keys, check_signature, public_key

CONFIGURATION_BYTES = 128
CHUNKER = 2
INLINE_MAX_BYTES = 4096
WRAPPINGS_MAX = 64
VERSION_WITH_PROOFS = 4
WRAPPING_MAX_BYTES = 16 * 1024
PASSPHRASE, RECOVERY_KIT, OWN_KEY = 1, 2, 3
PRIVATE_KEY_PREFIX = "age-secret-key-"
SECRET_BYTES = 32


@dataclass(frozen=True)
class Configuration:
    """What a reader needs of the configuration."""

    repository: bytes
    owner: bytes


@dataclass(frozen=True)
class Wrapping:
    """One encrypted copy of the key ring."""

    kind: int
    label: str
    recovery_identity: bytes
    locked: bytes
    sealed: bytes


@dataclass(frozen=True)
class WrappingSet:
    """All of them, and the keys of the epochs behind the first."""

    later_epochs: list[bytes]
    wrappings: list[Wrapping]


class Lock:
    """A closed repository: its signed configuration and its newest wrapping set."""

    def __init__(self, directory: Path) -> None:
        self.configuration = _read_configuration(stored(directory / "config"))
        self.set = _read_wrappings(directory / "wrappings", self.configuration)

    def open_with_password(self, password: bytes) -> Keys:
        """The keys, by the first wrapping that this password opens."""
        for wrapping in self._of_kind(PASSPHRASE):
            try:
                private_key = _private_key(age.open_with_passphrase(wrapping.locked, password))
            except age.WrongKey:
                continue
            return self._keys(_ring(age.open_with_identity(wrapping.sealed, private_key)))
        raise age.WrongKey("wrong password")

    def open_with_kit(self, page: kit.Kit) -> Keys:
        """The keys, by the wrapping that is the kit's."""
        keys = self._keys(self.ring_by_kit(page))
        require(keys.fingerprint() == page.fingerprint, "the kit's fingerprint is another")
        return keys

    def ring_by_kit(self, page: kit.Kit) -> list[bytes]:
        """What the wrapping of the kit holds."""
        if page.repository != self.configuration.repository:
            raise age.WrongKey("the recovery kit is of another repository")
        identity = blake3.derive_key("holdall v1 recovery age identity", page.secret)
        signer = public_key(blake3.derive_key("holdall v1 recovery signing key", page.secret))
        for wrapping in self._of_kind(RECOVERY_KIT):
            if wrapping.recovery_identity == signer:
                return _ring(age.open_with_identity(wrapping.sealed, identity))
        raise age.WrongKey("the recovery kit opens nothing here")

    def _of_kind(self, kind: int) -> list[Wrapping]:
        return [wrapping for wrapping in self.set.wrappings if wrapping.kind == kind]

    def _keys(self, ring: list[bytes]) -> Keys:
        keys, configuration = Keys(ring), self.configuration
        require(
            (keys.repository, keys.owner) == (configuration.repository, configuration.owner),
            "configuration: of another key ring",
        )
        require(keys.later_epochs == self.set.later_epochs, "wrappings: of another key ring")
        return keys


def _private_key(text: bytes) -> bytes:
    """The X25519 key in the age file that a passphrase opens."""
    try:
        return bech32.secret(text.decode().lower(), PRIVATE_KEY_PREFIX, bech32.BECH32)
    except ValueError as error:
        raise Damage(f"wrappings: a private key {error}") from None


def _ring(unwrapped: bytes) -> list[bytes]:
    """The secrets of all epochs in an age file."""
    fields = Fields(unwrapped, "key ring")
    fields.constant(b"HMst\2", "magic and version")
    secrets = [fields.take(SECRET_BYTES) for _ in range(1 + fields.unsigned(1))]
    fields.end()
    return secrets


def _read_configuration(data: bytes) -> Configuration:
    fields = Fields(data, "configuration")
    fields.constant(b"HCfg\3", "magic and version")
    fields.code([CHUNKER], "chunker")
    fields.code([1, 2], "suite")
    fields.code(range(1, 9), "leaf bits")
    repository = fields.take(16)
    require(fields.unsigned(2) <= INLINE_MAX_BYTES, "configuration: inline limit")
    fields.constant(bytes(6), "reserved fields")
    owner = fields.take(32)
    check_signature("config", owner, data[: fields.at], fields.take(SIGNATURE_BYTES))
    fields.end()
    return Configuration(repository, owner)


def _read_wrappings(folder: Path, configuration: Configuration) -> WrappingSet:
    """The set of the highest generation."""
    names = [path.name for path in folder.glob("*") if _is_generation(path.name)]
    require(bool(names), "wrappings: there are none")
    data = stored(folder / max(names))
    fields = Fields(data, f"wrappings/{max(names)}")
    fields.constant(b"HWrp", "magic")
    version = fields.code([VERSION_WITH_PROOFS - 1, VERSION_WITH_PROOFS], "version")
    count = fields.code(range(WRAPPINGS_MAX + 1), "count")
    epochs = fields.unsigned(1)
    fields.constant(bytes(1), "reserved field")
    fields.constant(configuration.repository, "repository")
    require(fields.unsigned(8) == int(max(names), 16), "wrappings: generation and name differ")
    fields.constant(configuration.owner, "owner key")
    signer, later_epochs = configuration.owner, []
    for epoch in range(2, 2 + epochs):
        key = fields.take(32)
        signed = configuration.repository + epoch.to_bytes(4, "little") + key
        check_signature("epoch", signer, signed, fields.take(SIGNATURE_BYTES))
        later_epochs.append(key)
        signer = key
    wrappings = [_read_wrapping(fields, version, configuration) for _ in range(count)]
    signed = data[: fields.at]
    check_signature("wrappings", signer, signed, fields.take(SIGNATURE_BYTES))
    fields.end()
    return WrappingSet(later_epochs, wrappings)


def _read_wrapping(fields: Fields, version: int, configuration: Configuration) -> Wrapping:
    kind = fields.code([PASSPHRASE, RECOVERY_KIT, OWN_KEY], "kind")
    label = fields.text(fields.unsigned(1))
    identity = fields.take(32) if kind == RECOVERY_KIT else b""
    if kind == RECOVERY_KIT and version == VERSION_WITH_PROOFS:
        _check_proof(fields, identity, configuration)
    fields.text(fields.unsigned(1))
    locked = _read_age_file(fields) if kind == PASSPHRASE else b""
    return Wrapping(kind, label, identity, locked, _read_age_file(fields))


def _check_proof(fields: Fields, identity: bytes, configuration: Configuration) -> None:
    """Takes the proof that whoever named a recovery identity has it."""
    if fields.code([0, SIGNATURE_BYTES], "proof length"):
        signed = configuration.repository + configuration.owner + identity
        check_signature("recovery identity", identity, signed, fields.take(SIGNATURE_BYTES))


def _read_age_file(fields: Fields) -> bytes:
    length = fields.unsigned(4)
    require(length <= WRAPPING_MAX_BYTES, f"{fields.what}: a wrapping of {length} bytes")
    return fields.take(length)


def _is_generation(name: str) -> bool:
    return len(name) == 16 and all(digit in "0123456789abcdef" for digit in name)
