"""Texts of the configuration to start from, and of the small programs it measures. `<name>` stands for a value."""

from __future__ import annotations

# A commented line is valid without its `# `.
_HEAD = """\
# What `cg-bench run` measures; `cg-bench list` shows it. Defaults for all benchmarks come first.
<table># threshold = "0.5%"       # a larger change of the score is a regression
# timeout = "5min"         # for each execution
# repeat = 1               # measured executions; in the seal, one is exact
# env = ["DATABASE_URL"]   # variables to pass on: programs see few, so that counts do not depend on the others

[[<prefix>benchmark]]
id = "example"
"""

_TAIL = """\
# tags = ["quick"]         # words to choose by: cg-bench run --tag quick
# cwd = "benchmarks"       # the folder to run in
# stdin = "data.txt"       # the program's standard input
# threshold = "1%"         # for this one
# limit = "Ir=500_000_000" # an absolute bound
# parameters = { n = [1000, 10000] } # one benchmark for each n; in the command, {n} stands for its value
"""

PYTHON = """\
command = ["python3", "<source>"]
"""

RUST = """\
# Once before, not measured.
setup = "cargo build --release --example <name> --target-dir target"
command = ["target/release/examples/<name>"]
"""

C = """\
# Once before, not measured. To measure the code of this project, build it here too: "<build> && cc …"
setup = "mkdir -p <folder> && cc -O2 -g -o <folder>/<name> <source>"
command = ["<folder>/<name>"]
"""

OTHER = """\
# Put your program here. No shell runs it; for one, write ["sh", "-c", "…"].
command = ["awk", "BEGIN { for (i = 0; i < 200000; i++) sum += i % 7; print sum }"]
# setup = "make"           # once before, not measured
"""

PYTHON_PROGRAM = '''\
"""An example of a benchmark: put in its place what your project should do quickly.

    cg-bench run

Do enough of it: Python's own start alone is some 40 million instructions.
"""

import json


def main() -> None:
    """Take orders through JSON and back."""
    orders = [{"number": n, "items": [n % 7, n % 11], "note": "x" * (n % 13)} for n in range(1000)]
    for _ in range(4):
        orders = json.loads(json.dumps(orders))
    print(sum(sum(order["items"]) for order in orders))


if __name__ == "__main__":
    main()
'''

RUST_PROGRAM = """\
// An example of a benchmark: put in its place what your crate should do quickly.
//
//     cg-bench run

use std::collections::HashMap;

fn main() {
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let mut state: u64 = 1;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *counts.entry(state >> 54).or_insert(0) += 1;
    }
    println!("{} keys, {} times the most frequent", counts.len(), counts.values().max().unwrap());
}
"""

C_PROGRAM = """\
/* An example of a benchmark: put in its place what your project should do quickly.
 *
 *     cg-bench run
 */
#include <stdio.h>

#define COUNT 4096

int main(void)
{
    static unsigned values[COUNT];
    unsigned state = 1;
    unsigned long sum = 0;
    int round, i;

    for (round = 0; round < 500; round++)
        for (i = 0; i < COUNT; i++) {
            state = state * 1664525u + 1013904223u;
            values[state >> 20] += state >> 24;
        }
    for (i = 0; i < COUNT; i++)
        sum += values[i];
    printf("%lu\\n", sum);
    return 0;
}
"""


def configuration(body: str, *, table: str = "", **marks: str) -> str:
    """Return a configuration with one benchmark; `table` is the name of the table that all stands in, if in one."""
    text = _HEAD + body + _TAIL
    marks |= {"table": f"[{table}]\n" if table else "", "prefix": f"{table}." if table else ""}
    for name, value in marks.items():
        text = text.replace(f"<{name}>", value)
    return text
