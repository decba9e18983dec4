#!/bin/sh
# install.sh: put this checkout of cachegrind-bench, with exactly the packages of requirements.txt, into a virtual
# environment of the job's own, and print the way to it as an output. What a job finds there cannot have been left by
# another: a runner's temporary folder is emptied between jobs.
#   INPUT_PYTHON   a Python >= 3.11 [default: found on PATH]
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)

fail() {
    # In one line, as another one may begin with a command.
    printf '::error title=cg-bench::%s\n' "$(printf %s "$*" | tr -d '\r\n')"
    exit 1
}

case $(uname -s) in
    Linux) ;;
    *) fail "Valgrind needs Linux, and this runner is $(uname -s): use runs-on: ubuntu-24.04" ;;
esac

# Always -I: what lies in the working directory, or where PYTHONPATH leads, is the project's, and may be anyone's.
is_new_enough() {
    "$1" -I -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1)' 2>/dev/null
}

python=${INPUT_PYTHON:-}
if [ -n "$python" ]; then
    is_new_enough "$python" || fail "python: $python is no Python 3.11 or newer"
else
    for name in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if is_new_enough "$name"; then
            python=$name
            break
        fi
    done
    [ -n "$python" ] || fail "no Python 3.11 or newer on this runner: add a step with actions/setup-python"
fi

if ! "$python" -I -c 'import ensurepip, venv' 2>/dev/null; then
    fail "$python has no venv module: add a step with actions/setup-python, or install python3-venv"
fi

venv=$(mktemp -d "${RUNNER_TEMP:-/tmp}/cg-bench-venv-XXXXXX")
echo "::group::Installing cachegrind-bench ($("$python" --version))"
"$python" -I -m venv "$venv"
pip() {
    # What the job says about places is for the job's own packages.
    env -u PYTHONPATH -u PYTHONHOME -u PIP_TARGET -u PIP_PREFIX -u PIP_USER -u PIP_REQUIREMENT -u PIP_CONSTRAINT \
        "$venv/bin/python" -I -m pip --disable-pip-version-check --no-input "$@"
}
pip install --quiet --no-compile --require-hashes --only-binary :all: -r "$here/scripts/action/requirements.txt"
# The build tool is among these packages, so nothing else is fetched.
pip install --quiet --no-compile --no-deps --no-build-isolation "$here"
echo "::endgroup::"
"$venv/bin/python" -I -m cachegrind_bench --version
echo "python=$venv/bin/python" >>"${GITHUB_OUTPUT:?this is for a step of GitHub Actions}"
