"""The keys that the key ring derives, what is named by them, and signatures.

Chapters 1, 10 and 11 of docs/format.md.
"""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import blake3
from bech32 import LETTERS
from fields import Damage

SIGNATURE_BYTES = 64


class Keys:
    """Everything that the key ring gives to a reader."""

    def __init__(self, ring: list[bytes]) -> None:
        self._master_secret, later = ring[0], ring[1:]
        self.repository = self._derived("repository id")[:16]
        self.owner = public_key(self._derived("owner signing key"))
        self._chunk_id_key = self._derived("chunk id key")
        self._node_id_key = self._derived("node id key")
        self._series_key = self._derived("series key")
        self._tag_token_key = self._derived("tag token key")
        self._sealing_keys = [_derived("sealing key", secret) for secret in ring]
        self.later_epochs = [public_key(_derived("epoch signing key", secret)) for secret in later]

    def _derived(self, purpose: str) -> bytes:
        return _derived(purpose, self._master_secret)

    def fingerprint(self) -> str:
        """What people compare, without its hyphens."""
        derived = blake3.derive_key(
            "holdall v1 repository fingerprint", self.owner + self.repository
        )
        bits = "".join(f"{byte:08b}" for byte in derived)
        return "".join(LETTERS[int(bits[at : at + 5], 2)] for at in range(0, 100, 5))

    def chunk_id(self, plain: bytes) -> bytes:
        """The object id of a piece of content."""
        return blake3.keyed(self._chunk_id_key, plain)

    def node_id(self, references: list[bytes], body: bytes) -> bytes:
        """The object id of a node."""
        count = len(references).to_bytes(4, "little")
        return blake3.keyed(self._node_id_key, count + b"".join(references) + body)

    def series(self, host: bytes, path_keys: set[bytes]) -> bytes:
        """The series of a snapshot: paths below others do not count."""
        outermost = [key for key in sorted(path_keys) if not path_keys & set(ancestors(key))]
        paths = b"".join(b"\0/" + key for key in outermost)
        return blake3.keyed(self._series_key, host + paths)[:16]

    def tag_token(self, tag: bytes) -> bytes:
        """What a keeper sees of a tag."""
        return blake3.keyed(self._tag_token_key, tag)[:16]

    def epoch_key(self, epoch: int) -> bytes:
        """The key from which those of the blocks of an epoch come."""
        if not 1 <= epoch <= len(self._sealing_keys):
            raise Damage(f"a block of the key epoch {epoch}, which the key ring lacks")
        return blake3.keyed(self._sealing_keys[epoch - 1], epoch.to_bytes(4, "little"))


def _derived(purpose: str, secret: bytes) -> bytes:
    return blake3.derive_key(f"holdall v1 {purpose}", secret)


def ancestors(key: bytes) -> list[bytes]:
    """The keys of the directories above a path, the root's too."""
    components = key.split(b"\0") if key else []
    return [b"\0".join(components[:count]) for count in range(len(components))]


def public_key(seed: bytes) -> bytes:
    """The Ed25519 public key of a seed."""
    key = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def check_signature(purpose: str, key: bytes, signed: bytes, signature: bytes) -> None:
    """Refuses what `key` did not sign for this purpose."""
    message = f"holdall v1 {purpose}".encode() + b"\0" + signed
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise Damage(f"{purpose}: the signature does not hold") from None
