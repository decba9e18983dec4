"""The fast Fourier transform: recursion over slices of lists of complex numbers, there and back."""

from __future__ import annotations

import cmath

SIZE = 2048
TOLERANCE = 1e-9


def transform(values: list[complex], sign: int) -> list[complex]:
    """Return the transform of a list whose length is a power of two; the inverse one is not scaled."""
    size = len(values)
    if size == 1:
        return values
    even, odd = transform(values[::2], sign), transform(values[1::2], sign)
    turned = [cmath.exp(sign * 2j * cmath.pi * place / size) * value for place, value in enumerate(odd)]
    pairs = list(zip(even, turned, strict=True))
    return [one + other for one, other in pairs] + [one - other for one, other in pairs]


def main() -> None:
    """Print the strongest frequency of a made-up signal."""
    signal = [cmath.sin(place * 0.3) + 0.5 * cmath.cos(place * 1.1) for place in range(SIZE)]
    spectrum = transform(signal, -1)
    back = [value / SIZE for value in transform(spectrum, 1)]
    assert max(abs(one - other) for one, other in zip(signal, back, strict=True)) < TOLERANCE
    strongest = max(range(SIZE // 2), key=lambda place: abs(spectrum[place]))
    print(f"strongest: {strongest} of {SIZE}")


if __name__ == "__main__":
    main()
