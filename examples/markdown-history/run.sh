#!/bin/sh
# Makes a repository whose commits are the releases of the package Markdown, backfills it, and writes the page.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
git init --quiet --initial-branch=main
for version in 3.0.1 3.1.1 3.2.2 3.3.3 3.3.4 3.3.6 3.3.7 3.4.1 3.4.2 3.4.3 3.4.4 3.5 3.5.1 3.5.2 3.6 3.7; do
    echo "Markdown==$version" >requirements.txt
    git add requirements.txt
    git -c user.name=example -c user.email=example@example.org commit --quiet --message "Markdown $version"
    git tag "v$version"
done
cp -r "$here/benchmarks" "$here/cg-bench.toml" .
cg-bench backfill main
cg-bench trend --html trend.html
echo "the page is $work/trend.html"
