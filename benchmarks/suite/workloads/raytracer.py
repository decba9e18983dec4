"""A tiny ray tracer: frozen dataclasses with operator methods, spheres over a plane, shades as letters."""

from __future__ import annotations

import math
from dataclasses import dataclass

WIDTH, HEIGHT = 36, 14
SHADES = " .:-=+*#%@"


@dataclass(frozen=True, slots=True)
class Vector:
    """A direction or a place."""

    x: float
    y: float
    z: float

    def __add__(self, other: Vector) -> Vector:
        """Return the sum."""
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector) -> Vector:
        """Return the difference."""
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, factor: float) -> Vector:
        """Return this stretched."""
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def dot(self, other: Vector) -> float:
        """Return the scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def unit(self) -> Vector:
        """Return the direction alone."""
        return self * (1 / math.sqrt(self.dot(self)))


@dataclass(frozen=True, slots=True)
class Sphere:
    """A ball."""

    centre: Vector
    radius: float

    def hit(self, origin: Vector, direction: Vector) -> float:
        """Return how far away a ray enters the ball, infinity where it misses."""
        to_centre = origin - self.centre
        half = to_centre.dot(direction)
        root = half * half - to_centre.dot(to_centre) + self.radius * self.radius
        distance = -half - math.sqrt(root) if root > 0 else math.inf
        return distance if distance > 0 else math.inf


SPHERES = (
    Sphere(Vector(0, 0, 6), 1.6),
    Sphere(Vector(2.2, 0.8, 5), 0.8),
    Sphere(Vector(-2.4, -0.6, 7), 1.1),
)
LIGHT = Vector(-0.6, 0.8, -0.7).unit()


def brightness(direction: Vector) -> float:
    """Return how bright the ray from the eye ends, between 0 and 1."""
    eye = Vector(0, 0, 0)
    distance, sphere = min(((ball.hit(eye, direction), ball) for ball in SPHERES), key=lambda pair: pair[0])
    if math.isinf(distance):
        return 0.0
    place = direction * distance
    normal = (place - sphere.centre).unit()
    shadowed = any(ball is not sphere and ball.hit(place, LIGHT) < math.inf for ball in SPHERES)
    return 0.15 if shadowed else max(0.15, min(1.0, normal.dot(LIGHT)))


def main() -> None:
    """Print the picture."""
    for row in range(HEIGHT):
        rays = [Vector((column / WIDTH - 0.5) * 1.4, 0.5 - row / HEIGHT, 1.0).unit() for column in range(WIDTH)]
        print("".join(SHADES[round(brightness(ray) * (len(SHADES) - 1))] for ray in rays))


if __name__ == "__main__":
    main()
