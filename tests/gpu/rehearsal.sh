#!/bin/sh
# Rehearses monkey on one real GPU, on a bare machine that reaches no registry: Linux on x86-64, Python 3.11 or newer,
# NVIDIA's driver. It takes less than four minutes. A line for each check says ok or FAILED; the exit code is 0 or 1.
#
#   sh tests/gpu/rehearsal.sh wheels      here, beforehand: fetches what is to be installed there into tests/gpu/wheels
#   sh tests/gpu/rehearsal.sh             there: in this directory tree, with the wheels
#   sh tests/gpu/rehearsal.sh --dry-run   here: on a card that is not there
#
# Fake in a dry run: the card, libcuda.so.1, libnvidia-ml.so.1, nvidia-smi, and /proc/driver/nvidia. No memory of a GPU is
# allocated, and none computes. Real: monkey with its agents, jobs and store, and nvidia-ml-py. So a dry run says nothing
# of NVIDIA's driver, only that this rehearsal works.
#
# $OUT: the directory that gets the evidence (default: a new one in /tmp); $PYTHON: the interpreter (python3);
# $WHEELS: the directory of the wheels (tests/gpu/wheels). A dry run without wheels takes the monkey of $PYTHON.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PYTHON=${PYTHON:-python3}
WHEELS=${WHEELS:-$here/wheels}
case ${1:-} in
wheels) exec "$PYTHON" "$here/wheels.py" "$WHEELS" ;;
--dry-run)
    # The agent believes nvidia-smi only where a driver is: in a space of mounts of our own, one seems to be.
    [ "$(id -u)" = 0 ] && root="" || root=--map-root-user
    exec unshare --mount $root sh "$0" --faked
    ;;
--faked | "") ;;
*)
    sed -n '2,16s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
scratch=$(mktemp -d)
card=
trap '[ -z "$card" ] || kill "$card"; rm -rf "$scratch"' EXIT
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "FAILED: expected Python 3.11 or newer, found $("$PYTHON" -V)" >&2
    exit 1
}
PYTHON=$("$PYTHON" -c 'import sys; print(sys.executable)')
if [ "${1:-}" = --faked ]; then
    echo "dry run: the card, its driver, NVML and nvidia-smi are fake"
    mkdir -p "$scratch/bin" "$scratch/lib" "$scratch/card/processes"
    gcc -shared -fPIC -o "$scratch/lib/libcuda.so.1" "$here/fake/cuda.c"
    gcc -shared -fPIC -o "$scratch/lib/libnvidia-ml.so.1" "$here/../unit/monkey_agent/telemetry/nvml.c"
    mount -t tmpfs none /proc/driver
    mkdir /proc/driver/nvidia
    export FAKE_CARD="$scratch/card" NVML_STATE="$scratch/card/state" LD_LIBRARY_PATH="$scratch/lib"
    export PATH="$scratch/bin:$PATH"
    printf '#!/bin/sh\nexec "%s" -IS "%s" "%s" "$@"\n' "$PYTHON" "$here/fake/card.py" "$FAKE_CARD" >"$scratch/bin/nvidia-smi"
    chmod +x "$scratch/bin/nvidia-smi"
    "$PYTHON" -IS "$here/fake/card.py" "$FAKE_CARD" &
    card=$!
    while [ ! -e "$NVML_STATE" ]; do sleep 0.1; done
fi
if [ "${1:-}" = --faked ] && [ ! -d "$WHEELS" ]; then
    echo "dry run: without wheels, so the monkey of $PYTHON is tested"
else
    # A bare machine's venv may have no pip: the one that travels installs.
    pip=$(echo "$WHEELS"/pip-*.whl)
    [ -e "$pip" ] || {
        echo "FAILED: expected wheels in $WHEELS, found none: run 'sh $0 wheels' where a registry is reached" >&2
        exit 1
    }
    "$PYTHON" -m venv --without-pip "$scratch/venv"
    "$scratch/venv/bin/python" "$pip/pip" install -q --no-index --find-links "$WHEELS" monkey-sweep
    PYTHON=$scratch/venv/bin/python
fi
evidence=${OUT:-$(mktemp -d /tmp/rehearsal-XXXXXX)}/evidence
mkdir "$evidence" "$scratch/work"
"$PYTHON" "$here/record.py" "$evidence" "$scratch/work" || {
    echo "FAILED: the rehearsal did not come to its end; see $evidence" >&2
    exit 1
}
echo "evidence: $evidence"
"$PYTHON" "$here/judge.py" "$evidence"
