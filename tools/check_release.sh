#!/usr/bin/env bash
# Builds wheel and sdist, and runs `edo demo` from each in clean environments.
#
#     bash tools/check_release.sh                  # every python3.11 … python3.13 that is found
#     bash tools/check_release.sh python3.12 …     # these
#
# What was built stays in dist/. PYTHON builds; constraints.txt holds the versions that are installed, and
# pip-audit looks them up among known vulnerabilities first. Where no advisories can be reached, the last
# line says so; with AUDIT=required that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=$root/constraints.txt
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
unset PYTHONPATH  # which would stand before what is installed

pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
    for version in 3.11 3.12 3.13; do
        if python$version -c 'pass' 2>/dev/null; then pythons+=("python$version"); fi
    done
fi
[ ${#pythons[@]} -gt 0 ] || { echo "name a Python: bash tools/check_release.sh python3.12" >&2; exit 2; }

echo "== known vulnerabilities of constraints.txt"
audited="NOT audited for vulnerabilities"
"${PYTHON:-${pythons[0]}}" -m venv "$work/audit"
status=3
if PIP_CONSTRAINT="" "$work/audit/bin/pip" install --quiet pip-audit; then
    status=0
    "$work/audit/bin/python" tools/audit.py "$work/audit/bin/pip-audit" constraints.txt || status=$?
fi
case $status in
    0) audited="no known vulnerabilities" ;;
    3) [ "${AUDIT:-}" != required ] || { echo "AUDIT=required, but: $audited" >&2; exit 1; } ;;
    *) exit 1 ;;
esac

echo "== building"
"${PYTHON:-${pythons[0]}}" -m venv "$work/build"
"$work/build/bin/pip" install --quiet build
rm -rf dist
"$work/build/bin/python" -m build --outdir dist . >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2; exit 1; }
wheel=$(ls dist/*.whl) sdist=$(ls dist/*.tar.gz)
"$work/build/bin/python" tools/release_contents.py "$wheel" "$sdist"

check() { # where to install from, with which Python
    local place="$work/env"
    rm -rf "$place" "$work/run"
    "$2" -m venv "$place"
    "$place/bin/pip" install --quiet "$1"
    mkdir "$work/run"
    (
        cd "$work/run"
        "$place/bin/edo" --version
        "$place/bin/edo" demo --out demo --json >demo.json
        test -s demo/report.html
        "$place/bin/edo" predict demo/ensemble --predictions demo/predictions/test.npz --out again.csv
        cmp again.csv demo/probabilities.csv
        PYTHONPATH=$root "$place/bin/python" -m reproduction lewidi2023 --table checks >/dev/null
        "$place/bin/python" -c 'import edokit, sys; assert sys.prefix in edokit.__file__'
    )
}

container() { # the commands of examples/serving/Dockerfile, with this Python
    rm -rf "$work/env"
    "$1" -m venv "$work/env"
    local pip=("$work/env/bin/pip" install --quiet --no-deps)
    PIP_CONSTRAINT="" "${pip[@]}" --require-hashes -r requirements-serve.txt
    PIP_CONSTRAINT="" "${pip[@]}" --no-build-isolation --no-index .
    "$work/env/bin/pip" check
    "$work/env/bin/edo" serve --help >/dev/null
}

for python in "${pythons[@]}"; do
    echo "== $("$python" --version), from $(basename "$wheel")"
    check "$wheel" "$python"
done
echo "== $("${pythons[0]}" --version), from $(basename "$sdist")"
check "$sdist" "${pythons[0]}"
for python in "${pythons[@]}"; do
    if [ "$(uname)" = Linux ] && "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))'; then
        echo "== $("$python" --version), as the container of examples/serving installs it"
        container "$python"
    fi
done
echo "fine: ${#pythons[@]} Pythons from the wheel, one from the sdist; $audited"
