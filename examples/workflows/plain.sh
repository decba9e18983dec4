#!/bin/sh
# Any CI: measures the suite, and then either stores the result (on the default branch) or compares it (anywhere else).
#
# Needs:  Debian 12+ or Ubuntu 24.04+ on x86-64 with git and Python >= 3.11, a checkout of git with a remote, a suite
#         (cg-bench.toml, made by "cg-bench init"), and on the default branch the right to push to that remote.
# Change: the settings, by the environment or here. Build your program at the place that is marked.
#
#   BRANCH   the branch that is built; what git calls it if the CI checks out a branch. Of a pull request it must not be the
#            one it goes to (Travis' TRAVIS_BRANCH is), nor a fork's that has the same name: it would be stored
#   TARGET   the branch to compare with, which is also the one whose results are stored
#   STORE    where the history is (docs/history.md): a git branch, files, a database
#   OUT      folder for result.json and report.md, which are worth keeping as artifacts
#   PACKAGE  what pip installs, where cg-bench is not on PATH: the address and full commit of a repository with cachegrind-bench
#            that you trust (git+https://HOST/PATH@COMMIT), or a checkout. Not a name: anybody may publish under it
#
# Exit codes: 0 fine, 1 a regression, 2 bad usage, 3 not comparable, 4 measuring failed.
set -eu

BRANCH=${BRANCH:-$(git rev-parse --abbrev-ref HEAD)}
TARGET=${TARGET:-main}
REMOTE=${REMOTE:-origin}
STORE=${STORE:-git:cg-bench-data@$REMOTE}
OUT=${OUT:-cg-bench-out}
PACKAGE=${PACKAGE:-git+https://github.com/OWNER_OF_YOUR_COPY/cachegrind-bench@0000000000000000000000000000000000000000}

if [ "$BRANCH" = HEAD ]; then
    echo "set BRANCH: this checkout is of a commit, so git does not know which branch is built" >&2
    exit 2
fi

# What is missing is installed; an image that has both is quicker.
if ! command -v valgrind >/dev/null; then
    root=
    if [ "$(id -u)" -ne 0 ]; then root=sudo; fi
    $root apt-get update -qq
    $root apt-get install -qq -y --no-install-recommends libc6-dbg python3-venv valgrind
fi
# Not on PATH: the environment has a Python of its own, which is not the one that your programs should find.
cg_bench=cg-bench
if ! command -v cg-bench >/dev/null; then
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet "$PACKAGE"
    cg_bench=$tools/bin/cg-bench
fi

# Build your program here.

# Made before anything is measured: a new entry in the working directory moves the counts of Python programs.
mkdir -p "$OUT"

# 4: some benchmarks failed. The others are in the result, which is stored or compared before this script fails.
measured=0
"$cg_bench" run -o "$OUT/result.json" || measured=$?
if [ "$measured" -ne 0 ] && [ "$measured" -ne 4 ]; then exit "$measured"; fi

if [ "$BRANCH" = "$TARGET" ]; then
    # It has been accepted, so it is told what moved, but nothing fails; the one before is found as it is not stored yet.
    "$cg_bench" diff "merge-base:$TARGET" "$OUT/result.json" --store "$STORE" --fail-on never \
        --markdown "$OUT/report.md" || true
    "$cg_bench" history add "$OUT/result.json" --store "$STORE"
    exit "$measured"
fi

# Many CIs fetch one branch only. A shallow clone stays shallow: cg-bench fetches what it needs.
shallow=
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then shallow=--depth=50; fi
git fetch --quiet --no-tags $shallow -- "$REMOTE" "+refs/heads/$TARGET:refs/remotes/$REMOTE/$TARGET"
"$cg_bench" diff "merge-base:$REMOTE/$TARGET" "$OUT/result.json" --store "$STORE" --markdown "$OUT/report.md"
