"""What sbatch gets for pilots: options, and a script in which nothing is secret. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey_stacks.pilots.leaving_time import count_leaving_seconds, count_reminder_seconds

#: @FLEET@ becomes the fleet's directory, as one word.
_SCRIPT = """\
#!/bin/bash -l
# A pilot of monkey: it works for the store until nothing is left, or its time is over; then it comes again.
fleet=@FLEET@
begun=$(date +%s)
pilot=$SLURMD_NODENAME-$SLURM_JOB_ID
[ -e "$fleet/settings.json" ] || exit 0
log=$fleet/logs/${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}_${SLURM_ARRAY_TASK_ID:-0}.log
fits() {
    "$1" -I -S -c 'import sys; sys.exit(sys.version_info[:2] != @VERSION@)' 2>/dev/null
}
# Where people look for why a pilot did not begin: beside the log; and in the store, if a Python is here for that.
note() {
    last=$(tail -n 20 "$log" 2>/dev/null | grep -v '^monkey: ' | tail -n 1 | sed 's|^.*/slurm_script: ||' | cut -c -300)
    why="$1${last:+ ($last)}"
    echo "monkey: pilot $pilot: $why"
    mkdir -p "$fleet/failed" && printf '%s\\n' "$why" > "$fleet/failed/$pilot"
    for each in @PYTHON@; do
        if fits "$each"; then
            tail -n 50 "$log" 2>/dev/null | "$each" -I -S "$fleet/bundle" --pilot-unfit "$fleet" "$pilot" "$why"
            break
        fi
    done
}
unfit() {
    note "$1"
    exit @UNFIT@
}
# The agent hears of a cancellation itself; then it is not wanted again.
cancelled=
trap 'cancelled=yes' TERM
@SETUP@
bundle=$(readlink -f "$fleet/bundle")
python=
for each in @PYTHON@; do
    if fits "$each"; then
        python=$each
        break
    fi
done
[ -n "$python" ] || unfit 'expected @DOTTED@ here, as the login node has: load it by setup:'
scratch=@SCRATCH@/monkey-$(id -u)
# Asks the agent to leave, not srun: that would end it at once.
trap 'kill -TERM "$(cat "$scratch/pids/$pilot")"' USR1
end=${SLURM_JOB_END_TIME:-$((begun + @TIME@))}
srun --export=ALL --overlap --mpi=none --mem=0 --ntasks=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" \\
    "$python" -I -S "$bundle" --pilot "$fleet" "$pilot" "$scratch" \\
    --leave-at $((end - @LEAVING@)) --pilot-time @TIME@ &
step=$!
while :; do
    wait "$step"
    code=$?
    kill -0 "$step" 2>/dev/null || break
done
echo "monkey: pilot $pilot left with $code"
if [ "$code" = @TAKEN_BACK@ ] && [ -z "$cancelled" ] && [ -e "$fleet/settings.json" ]; then
    scontrol requeue "$SLURM_JOB_ID" || echo "monkey: it comes again at the next apply"
fi
# An agent that ends at once with an error would do so again.
case $code in
    0 | @TAKEN_BACK@ | @UNFIT@) ;;
    *) [ -n "$cancelled" ] || [ $(($(date +%s) - begun)) -ge @SOON@ ] || note "its agent ended with $code" ;;
esac
exit "$code"
"""
#: Seconds within which an agent that ends with an error never began to work.
_SOON_SECONDS = 60
#: Where scratch is that nobody named.
_SCRATCH = "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}"


def list_options(slurm: SlurmSettings) -> list[str]:
    """Return the options of sbatch by which a pilot is asked for; the user's own come last."""
    options = [f"--time={math.ceil(slurm.time / 60)}", "--nodes=1", "--ntasks=1", f"--cpus-per-task={slurm.cpus}"]
    if slurm.memory:
        options.append(f"--mem={math.ceil(slurm.memory / 2**20)}M")
    if slurm.gpus:
        options.append(f"--gres=gpu:{f'{slurm.gpu_type}:' if slurm.gpu_type else ''}{slurm.gpus}")
    options += [f"--{name}={value}" for name, value in slurm.options]
    return [*options, *slurm.sbatch]


def list_batch_options(slurm: SlurmSettings, grace: float) -> list[str]:
    """Return all options of sbatch but the names and places that the login node gives; `grace`: see `write_script`."""
    reminder = round(count_reminder_seconds(slurm.time, grace))
    ours = ["--requeue", "--open-mode=append", "--export=NONE"]
    return [*ours, *([f"--signal=B:USR1@{reminder}"] if reminder else []), *list_options(slurm)]


def write_script(
    slurm: SlurmSettings, grace: float, executable: str, python: Sequence[int], codes: tuple[int, int]
) -> str:
    """Return the script of a pilot; the login node fills in the fleet's directory.

    `grace`: seconds that jobs may take to end. `executable` and `python`: the login node's Python, and its version.
    `codes`: the agent's exit codes for "taken back" and "cannot work here".
    """
    name = f"python{python[0]}.{python[1]}"
    setup = "\n".join(_write_setup_line(line) for line in slurm.setup)
    scratch = f'"{slurm.scratch or _SCRATCH}"'
    filled = {
        "SETUP": setup,
        "PYTHON": f"{shlex.quote(executable)} {name} python3",
        "VERSION": f"({python[0]}, {python[1]})",
        "DOTTED": f"Python {python[0]}.{python[1]}",
        "SCRATCH": scratch,
        # As Slurm counts: whole minutes.
        "TIME": str(math.ceil(slurm.time / 60) * 60),
        "LEAVING": str(round(count_leaving_seconds(slurm.time, grace))),
        "SOON": str(_SOON_SECONDS),
        "TAKEN_BACK": str(codes[0]),
        "UNFIT": str(codes[1]),
    }
    script = _SCRIPT
    for mark, text in filled.items():
        script = script.replace(f"@{mark}@", text)
    return script


def _write_setup_line(line: str) -> str:
    failed = shlex.quote(f"setup failed: {line}")
    return f"{{ {line}\n}} || unfit {failed}"
