"""Planets around a star: floating-point arithmetic on the attributes of objects, by a leapfrog integration in two dimensions."""

from __future__ import annotations

import math

STEPS = 2500
TICK = 0.005
DRIFT = 1e-3


class Body:
    """A point with a mass."""

    __slots__ = ("mass", "vx", "vy", "x", "y")

    def __init__(self, mass: float, distance: float) -> None:
        """Start on a circle around a star of mass 1, a quarter turn being as good as any other place."""
        self.mass = mass
        self.x, self.y = distance, 0.0
        self.vx, self.vy = 0.0, math.sqrt(1 / distance) if distance else 0.0


def kick(bodies: list[Body]) -> None:
    """Change all speeds by mutual gravitation."""
    for number, one in enumerate(bodies):
        for other in bodies[number + 1 :]:
            dx, dy = other.x - one.x, other.y - one.y
            square = dx * dx + dy * dy
            pull = TICK / (square * math.sqrt(square))
            one.vx += dx * pull * other.mass
            one.vy += dy * pull * other.mass
            other.vx -= dx * pull * one.mass
            other.vy -= dy * pull * one.mass


def drift(bodies: list[Body], tick: float) -> None:
    """Move all bodies on."""
    for body in bodies:
        body.x += body.vx * tick
        body.y += body.vy * tick


def energy(bodies: list[Body]) -> float:
    """Return the sum of kinetic and potential energy, which an exact solution keeps."""
    total = sum(body.mass * (body.vx**2 + body.vy**2) / 2 for body in bodies)
    for number, one in enumerate(bodies):
        for other in bodies[number + 1 :]:
            total -= one.mass * other.mass / math.hypot(one.x - other.x, one.y - other.y)
    return total


def main() -> None:
    """Print the energy before and after."""
    bodies = [Body(1.0, 0.0), Body(1e-3, 1.0), Body(3e-4, 1.8), Body(5e-5, 3.1), Body(4e-5, 4.9)]
    before = energy(bodies)
    for _ in range(STEPS):
        drift(bodies, TICK / 2)
        kick(bodies)
        drift(bodies, TICK / 2)
    after = energy(bodies)
    assert abs(after / before - 1) < DRIFT
    print(f"energy {before:.9f} -> {after:.9f}")


if __name__ == "__main__":
    main()
