"""Opening age files (age-encryption.org/v1), as far as wrappings of the key ring need it.

Written from https://age-encryption.org/v1: recipients are a passphrase (scrypt) or an X25519 key,
and the payload is a single short chunk.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fields import Damage, require

VERSION_LINE = b"age-encryption.org/v1"
MAC_PREFIX = b"---"
STANZA_PREFIX = b"-> "
BODY_COLUMNS = 64
PAYLOAD_NONCE_BYTES = 16
PAYLOAD_MAX_BYTES = 64 * 1024 + 16
WRAPPED_KEY_BYTES = 32
MAX_SCRYPT_LOG_ROUNDS = 20
SCRYPT_BLOCK_SIZE = 8


class WrongKey(Exception):
    """The file is sound as far as can be told, but this key does not open it."""


@dataclass(frozen=True)
class Stanza:
    """One recipient of the file."""

    arguments: list[bytes]
    body: bytes


@dataclass(frozen=True)
class AgeFile:
    """An age file, taken apart."""

    stanzas: list[Stanza]
    authenticated: bytes
    mac: bytes
    payload: bytes


def parse(data: bytes) -> AgeFile:
    """Takes an age file apart."""
    line, at = _line(data, 0)
    require(line == VERSION_LINE, "age file: unknown version")
    stanzas: list[Stanza] = []
    line, after = _line(data, at)
    while line.startswith(STANZA_PREFIX):
        arguments, body, at = line[len(STANZA_PREFIX) :].split(b" "), b"", after
        columns = BODY_COLUMNS
        while columns == BODY_COLUMNS:
            line, at = _line(data, at)
            columns = len(line)
            body += line
        stanzas.append(Stanza(arguments, _decoded(body)))
        line, after = _line(data, at)
    require(line.startswith(MAC_PREFIX + b" "), "age file: no authentication at its header's end")
    mac = _decoded(line[len(MAC_PREFIX) + 1 :])
    return AgeFile(stanzas, data[: at + len(MAC_PREFIX)], mac, data[after:])


def open_with_passphrase(data: bytes, passphrase: bytes) -> bytes:
    """Opens a file whose only recipient is a passphrase."""
    file = parse(data)
    require(
        len(file.stanzas) == 1 and file.stanzas[0].arguments[0] == b"scrypt",
        "age file: not a passphrase alone",
    )
    stanza = file.stanzas[0]
    require(len(stanza.arguments) == 3, "age file: a passphrase has a salt and a number of rounds")
    salt, rounds = _decoded(stanza.arguments[1]), stanza.arguments[2]
    require(len(salt) == 16 and rounds.isdigit(), "age file: bad salt or rounds of a passphrase")
    require(1 <= int(rounds) <= MAX_SCRYPT_LOG_ROUNDS, f"age file: 2^{int(rounds)} scrypt rounds")
    wrapping_key = hashlib.scrypt(
        passphrase,
        salt=VERSION_LINE + b"/scrypt" + salt,
        n=1 << int(rounds),
        r=SCRYPT_BLOCK_SIZE,
        p=1,
        maxmem=(1 << int(rounds)) * SCRYPT_BLOCK_SIZE * 128 + (1 << 20),
        dklen=32,
    )
    return _open_payload(file, _unwrapped(wrapping_key, stanza.body))


def open_with_identity(data: bytes, identity: bytes) -> bytes:
    """Opens a file that has the X25519 key of this secret among its recipients."""
    file = parse(data)
    secret = X25519PrivateKey.from_private_bytes(identity)
    recipient = secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    for stanza in file.stanzas:
        if stanza.arguments[0] != b"X25519":
            continue
        require(len(stanza.arguments) == 2, "age file: an X25519 recipient has one share")
        share = _decoded(stanza.arguments[1])
        require(len(share) == 32, "age file: bad share of an X25519 recipient")
        try:
            shared = secret.exchange(X25519PublicKey.from_public_bytes(share))
            wrapping_key = _hkdf(shared, share + recipient, VERSION_LINE + b"/X25519")
            return _open_payload(file, _unwrapped(wrapping_key, stanza.body))
        except (ValueError, WrongKey):
            continue
    raise WrongKey


def _unwrapped(wrapping_key: bytes, body: bytes) -> bytes:
    """The key of the file."""
    require(len(body) == WRAPPED_KEY_BYTES, "age file: bad length of a wrapped key")
    try:
        return ChaCha20Poly1305(wrapping_key).decrypt(bytes(12), body, None)
    except InvalidTag:
        raise WrongKey from None


def _open_payload(file: AgeFile, file_key: bytes) -> bytes:
    mac = hmac.digest(_hkdf(file_key, b"", b"header"), file.authenticated, "sha256")
    require(hmac.compare_digest(mac, file.mac), "age file: its header was changed")
    nonce, chunk = file.payload[:PAYLOAD_NONCE_BYTES], file.payload[PAYLOAD_NONCE_BYTES:]
    require(len(nonce) == PAYLOAD_NONCE_BYTES, "age file: cut short")
    require(len(chunk) <= PAYLOAD_MAX_BYTES, "age file: longer than one chunk")
    # The first chunk, and the last.
    place = bytes(11) + b"\1"
    try:
        return ChaCha20Poly1305(_hkdf(file_key, nonce, b"payload")).decrypt(place, chunk, None)
    except InvalidTag:
        raise Damage("age file: its payload was changed") from None


def _hkdf(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, purpose).derive(secret)


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    """The line at that place, and where the next one starts."""
    end = data.find(b"\n", at)
    require(end >= 0, "age file: its header has no end")
    return data[at:end], end + 1


def _decoded(text: bytes) -> bytes:
    """Canonical base64 without padding."""
    try:
        data = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise Damage("age file: not base64") from None
    require(base64.b64encode(data).rstrip(b"=") == text, "age file: not canonical base64")
    return data
