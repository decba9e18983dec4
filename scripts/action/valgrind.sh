#!/bin/sh
# valgrind.sh: make sure that this machine can measure: Valgrind, the symbols of exactly this libc, and a measurement to try.
#   CG_BENCH_PYTHON  the Python that has cachegrind-bench
#   INPUT_VALGRIND   `system` installs what is missing by apt; `skip` installs nothing
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

if [ "$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi

# Without what is only recommended, and, on machines that live for one job, without building the index of manual pages, which
# takes longer than all the rest.
install() {
    if [ "${RUNNER_ENVIRONMENT:-}" = github-hosted ] && [ -e /var/lib/man-db/auto-update ]; then
        $root rm -f /var/lib/man-db/auto-update
    fi
    # shellcheck disable=SC2086 # no word, or one
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
        install --yes --no-install-recommends "$@" >/dev/null
}

# The lists of a runner's image may be older than the mirror.
install_or_update() {
    install "$@" || { $root apt-get -qq update && install "$@"; }
}

case ${INPUT_VALGRIND:-system} in
    skip) ;;
    system)
        echo "::group::Installing Valgrind"
        if have apt-get; then
            have valgrind || install_or_update valgrind || echo "::error title=cg-bench::apt-get could not install valgrind"
            # Only symbols that belong to this very libc name its functions.
            libc=$(dpkg-query -W -f '${Version}' libc6 2>/dev/null || :)
            symbols=$(dpkg-query -W -f '${db:Status-Status} ${Version}' libc6-dbg 2>/dev/null || :)
            if [ -n "$libc" ] && [ "$symbols" != "installed $libc" ]; then
                install_or_update "libc6-dbg=$libc" ||
                    echo "::notice title=cg-bench::no libc6-dbg $libc: many functions of libc show as ???"
            fi
        elif ! have valgrind; then
            echo "::error title=cg-bench::no valgrind on this runner, and no apt-get to install it: install it in a step before"
        fi
        echo "::endgroup::"
        ;;
    *)
        # In one line, as another one may begin with a command.
        printf "::error title=cg-bench::valgrind: '%s' is neither 'system' nor 'skip'\n" "$(printf %s "$INPUT_VALGRIND" | tr -d '\r\n')"
        exit 2
        ;;
esac

echo "::group::Can this machine measure?"
# As the step that measures does. Who is root needs no limit.
[ -z "$root" ] || $root prlimit --pid $$ --rtprio=2:2 2>/dev/null || :
status=0
"$CG_BENCH_PYTHON" -I -m cachegrind_bench doctor || status=$?
echo "::endgroup::"
if [ "$status" != 0 ]; then
    echo "::error title=cg-bench::this machine cannot measure: see what 'cg-bench doctor' says in the log"
fi
exit "$status"
