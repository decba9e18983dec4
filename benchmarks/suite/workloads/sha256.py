"""SHA-256 in pure Python (FIPS 180-4): shifts and masks of integers, checked against `hashlib`."""

from __future__ import annotations

import hashlib
import math
import struct

MESSAGE = bytes(range(256)) * 8
MASK = 0xFFFFFFFF
PRIMES = [number for number in range(2, 312) if all(number % divisor for divisor in range(2, number))]


def root_bits(prime: int, root: int) -> int:
    """Return the first 32 bits of the fraction of a prime's square or cube root, exactly."""
    power = prime << (32 * root)
    guess = math.isqrt(power) if root == 2 else round(power ** (1 / 3))
    while guess**root > power:
        guess -= 1
    while (guess + 1) ** root <= power:
        guess += 1
    return guess & MASK


ROUND_CONSTANTS = [root_bits(prime, 3) for prime in PRIMES]


def rotated(word: int, by: int) -> int:
    """Rotate 32 bits to the right."""
    return (word >> by | word << 32 - by) & MASK


def schedule(block: bytes) -> list[int]:
    """Return the 64 words that a block becomes."""
    words = list(struct.unpack(">16I", block))
    for place in range(16, 64):
        early, late = words[place - 15], words[place - 2]
        first = rotated(early, 7) ^ rotated(early, 18) ^ early >> 3
        second = rotated(late, 17) ^ rotated(late, 19) ^ late >> 10
        words.append(words[place - 16] + first + words[place - 7] + second & MASK)
    return words


def compressed(state: list[int], block: bytes) -> list[int]:
    """Return the state after one more block."""
    a, b, c, d, e, f, g, h = state
    for constant, word in zip(ROUND_CONSTANTS, schedule(block), strict=True):
        turned = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
        first = h + turned + (e & f ^ ~e & g) + constant + word
        second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = first + second & MASK, a, b, c, d + first & MASK, e, f, g
    return [one + other & MASK for one, other in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def digest(message: bytes) -> str:
    """Return the hash in hexadecimal digits."""
    state = [root_bits(prime, 2) for prime in PRIMES[:8]]
    padding = b"\x80" + bytes((55 - len(message)) % 64) + struct.pack(">Q", 8 * len(message))
    padded = message + padding
    for start in range(0, len(padded), 64):
        state = compressed(state, padded[start : start + 64])
    return struct.pack(">8I", *state).hex()


def main() -> None:
    """Print the hash."""
    found = digest(MESSAGE)
    assert found == hashlib.sha256(MESSAGE).hexdigest()
    print(found)


if __name__ == "__main__":
    main()
