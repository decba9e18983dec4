"""A SAT solver: unit propagation and branching (DPLL) on the pigeonhole principle and a seeded random formula."""

from __future__ import annotations

import random
from itertools import combinations

Clauses = list[frozenset[int]]


def assigned(clauses: Clauses, literal: int) -> Clauses | None:
    """Return what is left when a literal is true, or None where a clause becomes empty."""
    left: Clauses = []
    for clause in clauses:
        if literal in clause:
            continue
        rest = clause - {-literal}
        if not rest:
            return None
        left.append(rest)
    return left


def satisfiable(clauses: Clauses) -> bool:
    """Decide by search; clauses of one literal leave no choice."""
    while clauses:
        unit = next((clause for clause in clauses if len(clause) == 1), None)
        if unit is None:
            break
        reduced = assigned(clauses, next(iter(unit)))
        if reduced is None:
            return False
        clauses = reduced
    if not clauses:
        return True
    _, literal = min((len(clause), min(clause)) for clause in clauses)
    for choice in (literal, -literal):
        reduced = assigned(clauses, choice)
        if reduced is not None and satisfiable(reduced):
            return True
    return False


def pigeons(holes: int) -> Clauses:
    """Say that one more pigeon than there are holes finds a hole of its own, which is false and hard to refute."""
    in_some = [frozenset(bird * holes + hole + 1 for hole in range(holes)) for bird in range(holes + 1)]
    alone = [
        frozenset({-(one * holes + hole + 1), -(other * holes + hole + 1)})
        for hole in range(holes)
        for one, other in combinations(range(holes + 1), 2)
    ]
    return in_some + alone


def formula(variables: int, count: int, seed: int) -> Clauses:
    """Return random clauses of three literals."""
    chance = random.Random(seed)
    return [
        frozenset(chance.choice((-1, 1)) * variable for variable in chance.sample(range(1, variables + 1), 3))
        for _ in range(count)
    ]


def main() -> None:
    """Print the answers."""
    assert not satisfiable(pigeons(5))
    print(f"pigeons fit: no; formula holds: {satisfiable(formula(30, 110, seed=5))}")


if __name__ == "__main__":
    main()
