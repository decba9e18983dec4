"""The Mandelbrot set as text: complex arithmetic in a tight loop."""

from __future__ import annotations

WIDTH, HEIGHT = 64, 24
LIMIT = 120
SHADES = " .:-=+*#%@"


def escape(point: complex) -> int:
    """Return after how many steps the sequence leaves the circle, at most the limit."""
    value = 0j
    for step in range(LIMIT):
        value = value * value + point
        if value.real * value.real + value.imag * value.imag > 4:
            return step
    return LIMIT


def main() -> None:
    """Print the picture."""
    for row in range(HEIGHT):
        steps = [escape(complex(column * 3 / WIDTH - 2.2, row * 2.4 / HEIGHT - 1.2)) for column in range(WIDTH)]
        print("".join(SHADES[step * (len(SHADES) - 1) // LIMIT] for step in steps))


if __name__ == "__main__":
    main()
