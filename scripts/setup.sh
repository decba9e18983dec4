#!/bin/sh
# setup.sh [demo|test|test-slow|lint]: install what is missing, and only that, for the target of make with this name.
#   demo       Valgrind with libc's symbols by apt; this package in .venv
#   test       the same, compilers for C and C++, and the test tools in .venv
#   test-slow  the same, clang, compilers for Rust, the headers of the system's Python and of Google Benchmark, PostgreSQL's
#              programs (no server is started), Chromium, and in .tools two more Valgrinds, one source file of the system's
#              Python, benchmarks with Criterion, JMH, tinybench and Vitest, act and actionlint, which run and check workflows, environments with
#              real benchmark suites, and a newer Python if there is none with perf trampolines
#   lint       this package and the linters in .venv
# Packages come by apt as root or with sudo; where neither goes, the line to run is printed. Safe to run at any time: with
# everything in place it takes a fraction of a second and prints nothing.
set -eu

stage=${1:-demo}
case $stage in
    demo | test | test-slow | lint) ;;
    *)
        echo "usage: scripts/setup.sh [demo|test|test-slow|lint]" >&2
        exit 2
        ;;
esac
cd "$(dirname "$0")/.."
here=$(pwd)

say() { echo "set-up: $*"; }

fail() {
    echo "set-up: $*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# --- Packages of the system ---------------------------------------------------------------------------------------------

package_is_installed() {
    case $(dpkg-query -W -f '${db:Status-Status} ' "$1" 2>/dev/null) in
        installed*) return 0 ;;
        *) return 1 ;;
    esac
}

# Set `root` to the words in front of a command that needs root.
become_root() {
    if [ "$(id -u)" = 0 ]; then
        root=
    elif have sudo && sudo -n true 2>/dev/null; then
        root='sudo -n'
    elif have sudo && [ -t 0 ] && [ -t 2 ]; then
        root=sudo # asks for the password
    else
        return 1
    fi
}

apt_get() {
    # shellcheck disable=SC2086 # no word, or some
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@"
}

# Install these packages. The lists are fetched only when they lack a package or are too old for the mirror.
install() {
    if ! have apt-get; then
        echo "set-up: missing here, and there is no apt-get to install it: $*" >&2
        return 1
    fi
    line="apt-get install --no-install-recommends $*"
    if ! become_root; then
        echo "set-up: this needs root. Please run it, then try again:  sudo $line" >&2
        return 1
    fi
    say "$line"
    log=$(mktemp)
    if apt_get install --yes --no-install-recommends "$@" >"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    say "apt-get update"
    # One unreachable third-party source must not stop us: the install that follows decides.
    apt_get update >"$log" 2>&1 || :
    if apt_get install --yes --no-install-recommends "$@" >>"$log" 2>&1; then
        rm -f "$log"
        return 0
    fi
    cat "$log" >&2
    rm -f "$log"
    echo "set-up: this failed: $line" >&2
    return 1
}

# Install PostgreSQL's programs: the tests start a server of their own. Debian's package would make and start one for the
# system as well, if it were not told otherwise for as long as this takes.
install_postgresql() {
    if ! have apt-get || ! become_root; then
        install postgresql # says what is missing
        return 1
    fi
    settings=/etc/postgresql-common/createcluster.d
    $root mkdir -p "$settings" && echo 'create_main_cluster = false' | $root tee "$settings/cg-bench.conf" >/dev/null
    installed=yes
    install postgresql || installed=no
    $root rm -f "$settings/cg-bench.conf"
    [ "$installed" = yes ]
}

# of_system_python FORMAT: print the version of /usr/bin/python3, or nothing where there is none.
of_system_python() {
    /usr/bin/python3 -c 'import sys; print(sys.argv[1] % sys.version_info[: sys.argv[1].count("%")])' "$1" 2>/dev/null || :
}

system_packages() {
    wanted=
    if [ "$usable" = no ]; then
        for_venv=$(packages_for_venv) || exit 1
        wanted=${for_venv:+ $for_venv}
    fi
    if [ "$stage" != lint ]; then
        [ -n "${CG_BENCH_VALGRIND:-}" ] || have valgrind || wanted="$wanted valgrind"
        if have dpkg-query && ! package_is_installed libc6-dbg; then wanted="$wanted libc6-dbg"; fi
    fi
    if [ "$stage" = test ] || [ "$stage" = test-slow ]; then
        have gcc || wanted="$wanted gcc"
        have g++ || wanted="$wanted g++"
        [ -e /usr/include/stdio.h ] || wanted="$wanted libc6-dev"
        have perl || wanted="$wanted perl"
        have git || wanted="$wanted git"
    fi
    # Counts do not need libc's symbols, only the function names in profiles do: a machine without them goes on.
    if [ "$wanted" = " libc6-dbg" ]; then
        install libc6-dbg || say "no libc6-dbg: many functions of libc show as ???"
    elif [ -n "$wanted" ]; then
        # shellcheck disable=SC2086 # a list of words
        install $wanted || exit 1
    fi
    [ "$stage" = test-slow ] || return 0
    # The Rust tests are the only ones that need it, so a machine where it cannot be had goes on. A rustup shim without a
    # toolchain is found on PATH and does not run.
    if ! { rustc --version && cargo --version; } >/dev/null 2>&1; then
        install rustc cargo || say "no rustc and cargo: the tests with Rust programs are skipped"
    fi
    # Likewise for the tests of the C header with another compiler than gcc, those that build a module of the system's Python,
    # and a benchmark with Google Benchmark.
    if ! have clang; then
        install clang || say "no clang: the tests of the C header with it are skipped"
    fi
    if ! [ -e "/usr/include/python$(of_system_python '%d.%d')/Python.h" ]; then
        install python3-dev || say "no python3-dev: the tests with a rebuilt _json are skipped"
    fi
    if ! [ -e /usr/include/benchmark/benchmark.h ]; then
        install libbenchmark-dev || say "no libbenchmark-dev: the tests with Google Benchmark are skipped"
    fi
    if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
        install_postgresql || say "no PostgreSQL: the tests with it are skipped"
    fi
    if ! have chromium; then
        install chromium || say "no chromium: the tests of the trend report's page in a browser are skipped"
    fi
}

# --- Python packages in .venv -------------------------------------------------------------------------------------------

# What .venv was made for and from; a moved checkout (scripts hold its path) or a new pyproject.toml makes it stale.
stamp=.venv/.set-up
stamp_end="$here $(cksum <pyproject.toml)"

venv_is_usable() {
    .venv/bin/python -c 'import sys, pip; sys.version_info >= (3, 11) or sys.exit(1)' 2>/dev/null &&
        { [ ! -e "$stamp" ] || grep -qF " $here " "$stamp"; }
}

# Print the real path of a Python >= 3.11: the name may be a version manager's shim, and may be one for nothing.
find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if have "$name" && path=$("$name" -c \
            'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' 2>/dev/null); then
            echo "$path"
            return 0
        fi
    done
    return 1
}

# Print the packages without which no .venv can be made.
packages_for_venv() {
    if ! python=$(find_python); then
        if found=$(python3 --version 2>/dev/null); then
            fail "needs Python 3.11 or newer on PATH (python3, python3.14, python3.13, python3.12 or python3.11);" \
                "python3 is $found"
        fi
        echo python3 python3-venv
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        # Debian has these in a package of their own, for each of its Pythons.
        case $python in
            /usr/bin/*) "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])' ;;
            *) fail "$python has no 'venv' or no 'ensurepip' module: install them, or put another Python first on PATH" ;;
        esac
    fi
}

python_packages() {
    case $stage in
        demo) target=. also="test test-slow lint" ;;
        test) target='.[test]' also="test-slow lint" ;;
        test-slow) target='.[test-slow]' also=lint ;;
        lint) target='.[dev]' also= ;;
    esac
    if [ "$usable" = no ]; then
        python=$(find_python) || fail "found no Python 3.11 or newer, even now"
        say "$("$python" --version) ($python) in .venv"
        "$python" -m venv --clear .venv
    fi
    for done_stage in $stage $also; do
        ! grep -qxF "$done_stage $stamp_end" "$stamp" 2>/dev/null || return 0
    done
    say "pip install --editable '$target'"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable "$target"
    echo "$stage $stamp_end" >>"$stamp"
}

# --- More Valgrinds, for the tests ---------------------------------------------------------------------------------------

# more_valgrind VERSION SUITE: the oldest and the newest that we promise; .tools survives, so this happens once.
more_valgrind() {
    dest=.tools/valgrind-$1
    case $(grep -qF "'$here/$dest/" "$dest/valgrind" 2>/dev/null && "$dest/valgrind" --version 2>/dev/null) in
        "valgrind-$1"*) return 0 ;;
    esac
    if got=$(tests/tools/fetch-valgrind "$2" "$dest" 2>&1); then
        say "$got of Debian $2 in $dest"
    else
        say "no Valgrind $1, its tests are skipped (${got:-fetch-valgrind failed})"
    fi
}

# --- A newer Python, for the tests ----------------------------------------------------------------------------------------

newer_python() {
    dest=.tools/python-3.13
    # Asked of the program itself: a moved one does not find its loader.
    ! "$dest/usr/bin/python3.13" -c '' 2>/dev/null || return 0
    ! .venv/bin/python -m tests.pythons || return 0
    if got=$(tests/tools/fetch-python "$dest" .venv/bin/python 2>&1); then
        say "$got of Debian trixie in $dest"
    else
        say "no Python with perf trampolines, the tests with --python-profile are skipped (${got:-fetch-python failed})"
    fi
}

# --- What runs and checks workflows, for the tests ------------------------------------------------------------------------

actions_tools() {
    if ! got=$(tests/tools/fetch-actions-tools .tools/actions 2>&1); then
        say "not all of act and actionlint, tests of the action are skipped (${got:-fetch-actions-tools failed})"
    elif [ -n "$got" ]; then
        say "$got"
    fi
}

# --- One source file of the system's Python, for the tests ----------------------------------------------------------------

python_source() {
    dest=.tools/cpython-$(of_system_python '%d.%d.%d')
    [ ! -e "$dest/_json.c" ] || return 0
    if got=$(tests/tools/fetch-source "$dest" 2>&1); then
        say "$got in $dest"
    else
        say "no sources of Python, the tests with a rebuilt _json are skipped (${got:-fetch-source failed})"
    fi
}

# --- Benchmarks built with Criterion and Divan, for the tests -------------------------------------------------------------

criterion_benchmark() {
    source=tests/data/native/criterion
    dest=.tools/criterion
    stamp_of_sources=$(cat "$source/Cargo.toml" "$source/Cargo.lock" "$source/src/lib.rs" "$source/benches/"*.rs | cksum)
    ! grep -qxF "$stamp_of_sources" "$dest/stamp" 2>/dev/null || return 0
    cargo --version >/dev/null 2>&1 || return 0 # said above
    say "cargo bench --no-run in $source"
    log=$(mktemp)
    rm -rf "$dest"
    # Cargo puts a hash into each program's name.
    if CARGO_TARGET_DIR="$here/$dest/target" cargo bench --quiet --no-run --locked --manifest-path "$source/Cargo.toml" \
        >"$log" 2>&1 && mv "$(find "$dest/target/release/deps" -name 'words-*' ! -name '*.d')" "$dest/words" &&
        mv "$(find "$dest/target/release/deps" -name 'sums-*' ! -name '*.d')" "$dest/sums"; then
        echo "$stamp_of_sources" >"$dest/stamp"
    else
        say "no benchmarks with Criterion and Divan, their tests are skipped ($(tail -n 1 "$log"))"
    fi
    rm -rf "$log" "$dest/target" # of 300 MB, two programs are needed
}

# first_error LOG: print what says why npm, Maven or javac failed; their last lines are about logs and help.
first_error() {
    grep -i -m 1 error "$1" || tail -n 1 "$1"
}

# --- Packages of Node with benchmarks, for the tests -----------------------------------------------------------------------

node_packages() {
    source=tests/data/node
    dest=.tools/node
    stamp_of_node=$(cat "$source/package.json" "$source/package-lock.json" | cksum)
    ! grep -qxF "$stamp_of_node" "$dest/stamp" 2>/dev/null || return 0
    skipped="the tests of tinybench and Vitest are skipped"
    if ! node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; then
        say "no Node 20 or newer: $skipped"
        return 0
    elif ! have npm; then
        say "no npm: $skipped"
        return 0
    fi
    say "npm ci in $source"
    log=$(mktemp)
    rm -rf "$dest"
    mkdir -p "$dest"
    cp "$source/package.json" "$source/package-lock.json" "$dest"
    if npm ci --loglevel=error --no-audit --no-fund --fetch-retries=0 --ignore-scripts --prefix "$dest" >"$log" 2>&1; then
        echo "$stamp_of_node" >"$dest/stamp"
    else
        say "no tinybench and no Vitest, their tests are skipped ($(first_error "$log"))"
    fi
    rm -f "$log"
}

# --- A jar with benchmarks of JMH, for the tests ---------------------------------------------------------------------------

jmh_benchmarks() {
    source=tests/data/jmh
    dest=.tools/jmh
    stamp_of_jmh=$(cat "$source/pom.xml" "$source/src/bench/"*.java | cksum)
    ! grep -qxF "$stamp_of_jmh" "$dest/stamp" 2>/dev/null || return 0
    for tool in mvn javac java; do
        if ! have "$tool"; then
            say "no $tool: the tests with JMH are skipped"
            return 0
        fi
    done
    say "mvn dependency:copy-dependencies and javac in $source"
    log=$(mktemp)
    rm -rf "$dest"
    mkdir -p "$dest/classes"
    # Without its list of benchmarks, which the processor writes, JMH finds none.
    if mvn -q -B -Dstyle.color=never -f "$source/pom.xml" dependency:copy-dependencies \
        -DoutputDirectory="$here/$dest/lib" >"$log" 2>&1 &&
        javac -d "$dest/classes" -cp "$dest/lib/*" -processor org.openjdk.jmh.generators.BenchmarkProcessor \
            "$source/src/bench/"*.java >"$log" 2>&1 &&
        [ -e "$dest/classes/META-INF/BenchmarkList" ]; then
        echo "$stamp_of_jmh" >"$dest/stamp"
    else
        say "no benchmarks with JMH, their tests are skipped ($(first_error "$log"))"
    fi
    rm -f "$log"
}

# --- Environments with real benchmark suites, for the tests ---------------------------------------------------------------

suite_environments() {
    .venv/bin/python tests/tools/make-suite-venvs .tools/suites ||
        say "no environments with real benchmark suites, their tests are skipped"
}

usable=yes
venv_is_usable || usable=no
system_packages
python_packages
if [ "$stage" = test-slow ]; then
    # Side by side, as each waits for the network most of its time; the environments are also made for the newer Python.
    more_valgrind 3.16 bullseye &
    more_valgrind 3.24 trixie &
    actions_tools &
    python_source &
    criterion_benchmark &
    node_packages &
    jmh_benchmarks &
    newer_python
    suite_environments
    wait
fi
