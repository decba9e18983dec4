"""Principal components of random measurements: random numbers, a matrix product and a singular value decomposition."""

from __future__ import annotations

import numpy as np


def main() -> None:
    """Print how much of the variance the first three components hold."""
    # A fixed seed: the work itself must be the same in every run; the seal cannot know what default_rng() would mean.
    random = np.random.default_rng(seed=42)
    factors = random.normal(size=(400, 8))
    measurements = factors @ random.normal(size=(8, 48)) + 0.1 * random.normal(size=(400, 48))
    measurements -= measurements.mean(axis=0)
    singular_values = np.linalg.svd(measurements, compute_uv=False)
    variance = singular_values**2 / (singular_values**2).sum()
    print(" ".join(f"{share:.3f}" for share in variance[:3]))


if __name__ == "__main__":
    main()
