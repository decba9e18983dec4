#!/bin/sh
# run.sh FOLDER: measure what docs/side-by-side.md shows, into a new folder: the report and page of cg-bench, the reports of
# Callgrind's and Cachegrind's own tools, and three samplings of each side by perf. With FLAMEGRAPH=DIR, the checkout of
# https://github.com/brendangregg/FlameGraph, a flame graph of the samples too. Needs cg-bench, gcc, git, Valgrind and perf.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir "$1"
cd "$1"
short=20000 long=10000000 # words that are counted under Valgrind, and while perf samples

git init --quiet --initial-branch=main repository
echo "*.json" >repository/.git/info/exclude
cp "$here/words.c" repository
for side in base candidate; do
    [ $side = base ] || patch --quiet -d repository -p1 <"$here/slower.patch"
    git -C repository add words.c
    git -C repository -c user.name=a -c user.email=a@b commit --quiet -m $side
    mkdir $side
    (cd repository && gcc -O2 -g -fno-omit-frame-pointer -o ../$side/words words.c)
    cp $side/words repository/words
    (cd repository && cg-bench run -q --call-tree --id words -o $side.json -- ./words $short)
    valgrind -q --tool=callgrind --callgrind-out-file=$side.callgrind $side/words $short
    valgrind -q --tool=cachegrind --cachegrind-out-file=$side.cachegrind $side/words $short
    callgrind_annotate --auto=no --tree=caller --inclusive=yes $side.callgrind >$side.callgrind.txt
    rm repository/words
done >log.txt 2>&1

(cd repository && cg-bench diff base.json candidate.json --html ../page.html) >diff.txt || true
cg_diff base.cachegrind candidate.cachegrind >difference.cachegrind
cg_annotate --auto=no difference.cachegrind >cg_diff.txt 2>&1

for run in 1 2 3; do
    for side in base candidate; do
        perf record -q -o $side.$run.data -e cpu-clock:u -F 997 --call-graph dwarf,4096 -- $side/words $long >/dev/null
        perf report -i $side.$run.data --stdio --children -g none --percent-limit 0.3 -F overhead_children,overhead,sample,sym
    done
    perf diff base.$run.data candidate.$run.data
done 2>/dev/null | grep -v '^#\|^$' >perf.txt

[ -n "${FLAMEGRAPH-}" ] || exit 0
for side in base candidate; do
    perf script -i $side.1.data 2>/dev/null | perl "$FLAMEGRAPH/stackcollapse-perf.pl" >$side.folded
done
perl "$FLAMEGRAPH/difffolded.pl" base.folded candidate.folded | perl "$FLAMEGRAPH/flamegraph.pl" --width 1000 >flame.svg
