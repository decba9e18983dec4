#!/usr/bin/env bash
# other_systems.sh [--again] [SUITE ...]: run `make test` of HEAD in fresh systems of these Debian suites (trixie and sid),
# each in namespaces as a container has them, with this machine's network. Run it as root.
#   --again               keep what was installed there before, and take a new clone of HEAD only
#   PYTEST_ARGS           as for `make test`
#   CG_BENCH_SYSTEMS      where the systems are kept (~/.cache/cg-bench/systems); 1.5 GB each, remove them at any time
# Needs debootstrap. A system gets the environment (proxies, certificates, PIP_*), pip's settings, /etc/resolv.conf and
# certificates of this machine. The exit code is 1 if tests failed in one of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
again=no
if [ "${1:-}" = --again ]; then again=yes && shift; fi
if [ $# = 0 ]; then set -- trixie sid; fi
systems=${CG_BENCH_SYSTEMS:-${XDG_CACHE_HOME:-$HOME/.cache}/cg-bench/systems}
commit=$(git rev-parse --short HEAD)

fail() {
    echo "other_systems: $*" >&2
    exit 2
}
[ "$(id -u)" = 0 ] || fail "needs root, to make systems and namespaces"
command -v debootstrap >/dev/null || fail "needs debootstrap (apt-get install debootstrap)"
# shellcheck disable=SC2016 # $(REPO_URI) is apt's
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
    'Component: main' 2>/dev/null | head -n 1) || mirror=

# make_system SUITE: what the README promises suffices, and certificates.
make_system() {
    rm -rf --one-file-system "${systems:?}/$1"
    mkdir -p "$systems"
    debootstrap --variant=minbase --include=ca-certificates,git,make,python3 "$1" "$systems/$1" \
        "${mirror:-http://deb.debian.org/debian}" >"$systems/$1.log" 2>&1 || fail "see $systems/$1.log"
}

# give_settings ROOT: how this machine reaches the package registries.
give_settings() {
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf "$HOME/.config/pip/pip.conf"; do
        [ ! -e "$file" ] || install -D -m 644 "$file" "$1${file/#"$HOME"//root}"
    done
}

# Of a container: its own root, processes, /dev and /dev/shm; /sys can be read.
# shellcheck disable=SC2016 # for the shell in the namespaces
in_namespaces='
    cd "$0" && mount --bind . . && cd "$0"
    mount -t proc proc proc && mount --rbind -o ro /sys sys
    mount -t tmpfs -o mode=755 dev dev && mkdir dev/pts dev/shm && mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
    mount -t tmpfs shm dev/shm && ln -s pts/ptmx dev/ptmx && ln -s /proc/self/fd dev/fd
    for one in stdin:0 stdout:1 stderr:2; do ln -s fd/${one#*:} dev/${one%:*}; done
    for one in null zero full random urandom tty; do touch dev/$one && mount --bind /dev/$one dev/$one; done
    pivot_root . . && umount -l . && cd /root/cachegrind-bench
    make test PYTEST_ARGS="$PYTEST_ARGS" && result=0 || result=$?
    echo "$(.venv/bin/python -V), $(valgrind --version), gcc $(gcc -dumpfullversion), $(ldd --version | sed -n "1s/.* //p")" >/versions
    exit "$result"'

results=()
failed=0
for suite; do
    root=$systems/$suite
    [ "$again" = yes ] && [ -e "$root/usr/bin/make" ] || make_system "$suite"
    give_settings "$root"
    checkout=$root/root/cachegrind-bench
    mkdir -p "$checkout"
    find "$checkout" -mindepth 1 -maxdepth 1 ! -name .venv ! -name .tools -exec rm -rf {} +
    git clone --quiet --no-local . "$checkout.new" # with its history
    cp -a "$checkout.new/." "$checkout" && rm -rf "$checkout.new"
    env HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TMPDIR=/tmp PYTEST_ARGS="${PYTEST_ARGS:-}" \
        unshare --pid --mount --fork --kill-child --propagation private sh -eu -c "$in_namespaces" "$root" \
        2>&1 | tee "$root.log" || failed=1
    results+=("$suite at $commit ($(cat "$root/versions")): $(sed -n 's/^=* \(.*[0-9] passed.*\|.* error.*\) in .*/\1/p' "$root.log" | tail -n 1)")
done
printf '%s\n' "${results[@]}"
exit "$failed"
