"""What `cg-bench growth` says of programs whose growth is known: python -m benchmarks.growth [NAME]...

Prints a table in Markdown, as docs/growth.md has it; exits with 1 if a class is not the one of the textbook.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "cachegrind_bench"]


class Program(NamedTuple):
    """A program, its class by the textbook, and the sizes that it is measured at."""

    language: str
    name: str
    growth: str
    sizes: str

    @property
    def title(self) -> str:
        """Its name in the table."""
        return f"{self.language} {self.name}"


PROGRAMS = [
    Program("C", "insertion_sort", "n²", "250..4000x2"),
    Program("C", "merge_sort", "n log n", "1000..32000x2"),
    Program("C", "quick_sort", "n log n", "1000..32000x2"),
    Program("C", "quick_sort_sorted", "n²", "250..4000x2"),
    Program("C", "heap_sort", "n log n", "1000..32000x2"),
    Program("C", "binary_search", "log n", "1000..32000x2"),
    Program("C", "hash_lookups", "n", "1000..32000x2"),
    Program("C", "hash_one_bucket", "n²", "250..4000x2"),
    Program("C", "string_append", "n²", "250..4000x2"),
    Program("C", "matrix_product", "n³", "10..160x2"),
    Program("C", "nested_early_end", "n", "1000..32000x2"),
    Program("C", "nested_loops", "n²", "250..4000x2"),
    Program("C", "trial_division", "n^1.5", "1000..32000x2"),
    Program("C", "pairs_in_table", "n² log n", "25..800x2"),
    Program("C", "fibonacci", "2^n", "12..22+2"),
    Program("C", "subset_sums", "2^n", "8..18+2"),
    Program("C", "constant", "1", "1000..16000x2"),
    Program("C", "sieve", "n", "1000..32000x2"),
    Program("Rust", "sort_unstable", "n log n", "1000..32000x2"),
    Program("Rust", "sort_sorted", "n", "1000..32000x2"),
    Program("Rust", "hash_map", "n", "1000..32000x2"),
    Program("Rust", "btree_map", "n log n", "1000..32000x2"),
    Program("Rust", "push_str", "n", "1000..32000x2"),
    Program("Rust", "concatenated", "n²", "250..8000x2"),
    Program("Rust", "remove_first", "n²", "250..8000x2"),
    Program("Rust", "pop_front", "n", "1000..32000x2"),
    Program("Rust", "duplicates_by_contains", "n²", "250..4000x2"),
    Program("Rust", "duplicates_by_set", "n", "1000..32000x2"),
    Program("Rust", "matrix_product", "n³", "10..160x2"),
    Program("Rust", "fibonacci", "2^n", "12..22+2"),
    Program("CPython", "sort_random", "n log n", "500..16000x2"),
    Program("CPython", "sort_sorted", "n", "2000..64000x2"),
    Program("CPython", "insertion_sort", "n²", "50..800x2"),
    Program("CPython", "list_pop_first", "n²", "1000..32000x2"),
    Program("CPython", "list_pop_last", "n", "1000..32000x2"),
    Program("CPython", "in_list", "n²", "100..1600x2"),
    Program("CPython", "in_set", "n", "1000..32000x2"),
    Program("CPython", "dict_lookups", "n", "1000..32000x2"),
    Program("CPython", "dict_collisions", "n²", "25..400x2"),
    Program("CPython", "deep_copy", "n", "250..4000x2"),
    Program("CPython", "str_append", "n", "1000..32000x2"),
    Program("CPython", "str_prepend", "n²", "250..8000x2"),
    Program("CPython", "str_join", "n", "1000..32000x2"),
    Program("CPython", "backtracking", "2^n", "8..18+2"),
    Program("CPython", "bisection", "log n", "1000..32000x2"),
    Program("CPython", "matrix_product", "n³", "6..48x2"),
    Program("CPython", "fibonacci", "2^n", "10..20+2"),
    Program("CPython", "all_pairs", "n²", "100..1600x2"),
    Program("CPython", "heap_queue", "n log n", "500..8000x2"),
    Program("CPython", "json_dumps", "n", "500..8000x2"),
    Program("CPython", "big_product", "n^1.5", "1000..32000x2"),
]


def built(folder: Path) -> dict[str, list[str]]:
    """Build what has to be, and return how the programs of each language are started."""
    compilers = {"C": ["gcc", "-g", "-O1", "programs.c"], "Rust": ["rustc", "-g", "-O", "programs.rs"]}
    for language, words in compilers.items():
        subprocess.run([*words, "-o", str(folder / language)], cwd=HERE, check=True)
    found = {language: [str(folder / language)] for language in compilers}
    return found | {"CPython": [sys.executable, str(HERE / "programs.py")]}


def cpu_seconds() -> float:
    """Return what the commands so far took, whatever else the machine does."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(program: Program, start: list[str]) -> dict[str, Any]:
    """Return what `cg-bench growth` says of a program."""
    words = ["growth", "--sizes", program.sizes, "-q", "--format", "json", "--", *start, program.name, "{size}"]
    found = subprocess.run([*COMMAND, *words], check=True, capture_output=True, text=True, cwd="/")
    (group,) = json.loads(found.stdout)["growth"]
    return dict(group)


def main(names: list[str]) -> int:
    """Print the table of these programs, or of all, and return the exit code."""
    wrong = 0
    print("| program | sizes | textbook | found | sure | next best, squares | exponents | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --: |")
    with tempfile.TemporaryDirectory() as folder:
        start = built(Path(folder))
        for program in PROGRAMS:
            if names and program.name not in names and program.title not in names:
                continue
            began = cpu_seconds()
            group = measured(program, start[program.language])
            took = cpu_seconds() - began
            fit = group["fits"]["Ir"]
            exponents = ", ".join("–" if item is None else f"{item / 1000:.2f}" for item in fit["exponents"])
            better = "exact" if fit["better"] is None else f"{fit['better']:,} ×"
            is_right = fit["growth"] == program.growth and fit["clear"]
            wrong += not is_right
            found = fit["growth"] if is_right else f"**{fit['growth']}**"
            sure = "yes" if fit["clear"] else "**no**"
            cells = (program.title, program.sizes, program.growth, found, sure, f"{fit['other']}, {better}", exponents)
            print("|", " | ".join(cells), f"| {took:.0f} |", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
