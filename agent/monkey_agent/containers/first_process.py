"""The first process of a container: a shell that ends it, with all its processes, when the supervisor is gone.

The supervisor has the other end of its descriptor, and writes nothing there. When the kernel closes that end, whatever
killed the supervisor, the shell exits. It is process 1 of its namespace, so the kernel kills the rest. It hands on no
signals: the supervisor sends them to each process of a job.
"""

from __future__ import annotations

import shlex

from monkey.processes.container_usage import make_usage_script

#: A signal that the job could send as well would do the same: it may end itself.
_SCRIPT = """\
exec 3<&{fd} </dev/null
trap 'exit 137' USR1
first=$$
{{ while read -r _; do :; done; kill -USR1 "$first"; }} <&3 >/dev/null 2>&1 &
{mark}"$@" 3<&- &
wait "$!"
code="$?"
{report}exit "$code"
"""


def make_shell_arguments(
    argv: list[str], fd: int, venv: str = "", report: str = "", home: str = "", mark: str = ""
) -> list[str]:
    """Return the arguments of /bin/sh that run `argv` until the descriptor `fd` is closed at its other end.

    `venv`: a virtual environment to activate; `report`: the file to which they write what the container used.
    `home`: the value of HOME, where the runtime takes none. `mark`: the file that they empty before `argv`
    runs, which it does only if that is possible. "" stands for none of these.
    """
    quoted = shlex.quote(venv)
    activation = f'export VIRTUAL_ENV={quoted} PATH={quoted}/bin:"$PATH"\n' if venv else ""
    activation += f"export HOME={shlex.quote(home)}\n" if home else ""
    script = make_usage_script(shlex.quote(report)) if report else ""
    # Emptied, not removed: an image may have no programs, and a full disk has no room for a new file.
    begin = f": >{shlex.quote(mark)} || exit 1\n" if mark else ""
    return ["-c", activation + _SCRIPT.format(fd=fd, mark=begin, report=script), "monkey", *argv]
