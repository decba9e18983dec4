#!/bin/sh
# Makes a repository whose commits are releases of SQLite, as the crate libsqlite3-sys has them, backfills it, and writes the page.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work/crate/src" "$work/sqlite"
touch "$work/crate/src/lib.rs"
cd "$work/sqlite"
git init --quiet --initial-branch=main
for version in 0.10.0 0.11.0 0.13.0 0.15.0 0.16.0 0.17.1 0.18.0 0.20.0 0.22.0 0.23.0 0.23.2 0.24.2 \
    0.25.2 0.26.0 0.27.0 0.28.0 0.29.0 0.31.0 0.33.0 0.34.0 0.35.0 0.37.0 0.38.2 0.39.1; do
    cat >"$work/crate/Cargo.toml" <<END
[package]
name = "crate"
version = "0.0.0"
edition = "2018"
[dependencies]
libsqlite3-sys = "=$version"
END
    rm -f "$work/crate/Cargo.lock"
    cargo vendor --quiet --manifest-path "$work/crate/Cargo.toml" "$work/crate/vendor" >"$work/crate/source.toml"
    cp "$work/crate/vendor/libsqlite3-sys/sqlite3/sqlite3.c" "$work/crate/vendor/libsqlite3-sys/sqlite3/sqlite3.h" .
    release=$(sed -n 's/^#define SQLITE_VERSION  *"\(.*\)"/\1/p' sqlite3.h)
    date=$(sed -n 's/^#define SQLITE_SOURCE_ID  *"\([^ ]* [^ ]*\).*"/\1/p' sqlite3.h)
    git add sqlite3.c sqlite3.h
    GIT_COMMITTER_DATE="$date +0000" git -c user.name=example -c user.email=example@example.org \
        commit --quiet --date "$date +0000" --message "SQLite $release"
    git tag "version-$release"
    echo "SQLite $release"
done
cp -r "$here/benchmarks" "$here/cg-bench.toml" .
cg-bench backfill main
cg-bench trend --html trend.html
echo "the page is $work/sqlite/trend.html"
