# Sourced by the scripts beside it: makes a virtual environment with opgen in it, once, and sets $PYTHON.
#
#   OPGEN_VENV    where it is (default: .venv in the repository)
#   OPGEN_PYTHON  the Python to make it with (default: python3)

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${OPGEN_VENV:-$root/.venv}"
PYTHON="$venv/bin/python"

make_venv() {
    local base="${OPGEN_PYTHON:-python3}"
    if ! "$base" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        echo "opgen needs Python 3.10 or newer; OPGEN_PYTHON names the interpreter (now: $base)" >&2
        return 1
    fi
    if ! "$base" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "$base cannot make virtual environments: its venv or ensurepip module is missing" >&2
        echo "(Debian and Ubuntu: apt install python3-venv; or name another Python with OPGEN_PYTHON)" >&2
        return 1
    fi
    "$base" -m venv "$venv"
}

# Installs opgen from this checkout, editable, with one of its extras (demo, test, or dev, which holds the others); again
# only if pyproject.toml has changed since.
setup_venv() {
    local extra="$1" stamp="$venv/opgen-installed"
    [ -x "$PYTHON" ] || make_venv
    if ! cmp -s "$root/pyproject.toml" "$stamp-$extra" && ! cmp -s "$root/pyproject.toml" "$stamp-dev"; then
        echo "installing opgen[$extra] into $venv" >&2
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --editable "$root[$extra]"
        cp "$root/pyproject.toml" "$stamp-$extra"
    fi
}

# Tests start Python some hundred times: what it makes of sources is kept where an environment says that it shall not
# stand beside them.
keep_bytecode() {
    if [ -n "${PYTHONDONTWRITEBYTECODE:-}" ]; then
        unset PYTHONDONTWRITEBYTECODE
        export PYTHONPYCACHEPREFIX="$venv/bytecode"
    fi
}
