"""Secrets of 32 bytes as text: Bech32 (BIP 173) and Bech32m (BIP 350).

Chapters 9 and 15 of docs/format.md: private keys of age, and secrets of recovery kits.
"""

LETTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
BECH32 = 1
BECH32M = 0x2BC830A3


def secret(text: str, prefix: str, variant: int) -> bytes:
    """The 32 bytes of a lower-case text with that prefix; says what is wrong with another one."""
    front, one, letters = text.rpartition("1")
    if not one or front != prefix or any(letter not in LETTERS for letter in letters):
        raise ValueError("is no secret")
    numbers = [LETTERS.index(letter) for letter in letters]
    upper, lower = [ord(letter) >> 5 for letter in prefix], [ord(letter) & 31 for letter in prefix]
    if _polymod([*upper, 0, *lower, *numbers]) != variant:
        raise ValueError("has a typing error")
    bits = "".join(f"{number:05b}" for number in numbers[:-6])
    if len(bits) != 260 or "1" in bits[256:]:
        raise ValueError("has another length")
    return int(bits[:256], 2).to_bytes(32, "big")


def _polymod(numbers: list[int]) -> int:
    checksum = 1
    for number in numbers:
        top = checksum >> 25
        checksum = (checksum & 0x1FFFFFF) << 5 ^ number
        for bit, generator in enumerate(GENERATORS):
            checksum ^= generator if top >> bit & 1 else 0
    return checksum
