"""The keeper of an agent on this host: a unit of the user's systemd, or a line in the user's crontab.

A unit is used only where the user's systemd is confirmed to live without a login: otherwise it ends seconds after it.
Neither starts an agent that left in peace, was asked to leave, is being replaced, or cannot work here.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
from pathlib import Path

from monkey.fleet.agent_state import TAKEN_BACK, UNFIT
from monkey.removal import remove_file
from monkey_stacks.ssh.remote.host_facts import PROGRAM_SECONDS, read_environment
from monkey_stacks.ssh.remote.paths import FleetDirectory, read_machine_id, remove_empty, write_file

#: Ways to keep agents: by the user's systemd; detached, and started again by cron after a reboot; only detached.
SYSTEMD, CRON, DETACHED = "systemd", "cron", "detached"
#: Seconds that an agent may take to release its jobs.
STOP = 150

_UNIT = """\
[Unit]
Description=monkey-agent of {fleet}
{condition}ConditionPathExists=!{directory}/left-in-peace
ConditionPathExists=!{directory}/drain
# After a boot without a network, for most of an hour; later, `monkey apply` begins anew.
StartLimitIntervalSec=7200
StartLimitBurst=600

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
SuccessExitStatus={taken_back}
RestartPreventExitStatus={unfit}
RestartSec=5
KillMode=mixed
TimeoutStopSec={stop}
# A job that takes too much memory is ended by the kernel, in a control group of its own; the agent tells of it.
Delegate=memory
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def find_units() -> Path:
    """Return the directory of this user's units."""
    return Path.home() / ".config/systemd/user"


def list_units(host: Path) -> list[str]:
    """Return the names of the units of all agents, of any fleet, with a directory below `host`."""
    found = []
    for path in sorted(find_units().glob(f"monkey-*-{host.name}-*.service")):
        with contextlib.suppress(OSError):
            # Two projects may keep their agents in places of their own.
            found += [path.name] if f"=!{_escaped(str(host))}/" in path.read_text() else []
    return found


def name_unit(place: FleetDirectory, agent: Path) -> str:
    """Return the name of an agent's unit, which has the host's name, as hosts may share the directory of units."""
    return f"monkey-{place.fleet}-{place.host.name}-{agent.name}.service"


def start_by_systemd(place: FleetDirectory, agent: Path, command: list[str]) -> None:
    """Let systemd run an agent, now and after each boot. Raises OSError."""
    name = name_unit(place, agent)
    identity = read_machine_id()
    text = _UNIT.format(
        fleet=place.fleet,
        condition=f"ConditionHost={identity}\n" if identity else "",
        directory=_escaped(str(agent)),
        command=" ".join(_quoted(word) for word in command),
        stop=STOP,
        taken_back=TAKEN_BACK,
        unfit=UNFIT,
    )
    changed = write_file(find_units() / name, text.encode(), 0o644)
    wants = find_units() / "default.target.wants"
    wants.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (wants / name).symlink_to(f"../{name}")
    if changed:
        _systemctl("daemon-reload")
    with contextlib.suppress(OSError):
        _systemctl("reset-failed", name)
    _systemctl("start", name)


def stop_by_systemd(place: FleetDirectory, agent: Path) -> bool:
    """Let systemd stop an agent, and remove its unit; return whether there was one."""
    name = name_unit(place, agent)
    path, link = find_units() / name, find_units() / "default.target.wants" / name
    if not path.exists() and not link.is_symlink():
        return False
    remove_file(link)
    with contextlib.suppress(OSError):
        _systemctl("stop", name, patience=STOP + PROGRAM_SECONDS)
    remove_file(path)
    with contextlib.suppress(OSError):
        _systemctl("daemon-reload")
        _systemctl("reset-failed")
    remove_empty(find_units() / "default.target.wants", find_units(), find_units().parent, find_units().parent.parent)
    return True


def is_kept_by_systemd(place: FleetDirectory, agent: Path) -> bool:
    """Return whether systemd starts the agent after a boot."""
    name = name_unit(place, agent)
    return (find_units() / name).exists() and (find_units() / "default.target.wants" / name).is_symlink()


def _quoted(word: str) -> str:
    """Return a word of a command line, quoted as systemd reads it."""
    return '"' + _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$") + '"'


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _systemctl(*words: str, patience: float = PROGRAM_SECONDS) -> None:
    try:
        run = subprocess.run(
            ["systemctl", "--user", "--quiet", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience,
            env=read_environment(),
        )
    except subprocess.TimeoutExpired as exc:
        raise OSError(f"systemctl --user {words[0]} does not answer") from exc
    if run.returncode:
        raise OSError(f"systemctl --user {words[0]} failed: {run.stderr.decode(errors='replace').strip()}")


def start_detached(command: list[str]) -> None:
    """Start an agent that outlives our login. Raises OSError."""
    subprocess.run(
        [*command, "--detach"], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_SECONDS, cwd="/"
    )


def add_to_crontab(place: FleetDirectory, agent: Path, command: list[str]) -> None:
    """Add a line to the crontab, by which cron starts the agent after a reboot. Raises OSError."""
    peace = " || ".join(f"test -e {shlex.quote(f'{agent}/{name}')}" for name in ("left-in-peace", "drain"))
    line = f"@reboot {peace} || exec {shlex.join(command)} --detach --patient"
    # To cron, an unescaped % is the end of the line.
    _change_crontab(_mark(place, agent), line.replace("%", "\\%"))


def remove_from_crontab(place: FleetDirectory, agent: Path | None = None) -> None:
    """Remove the agent's line from the crontab, or all lines of this fleet. Raises OSError."""
    _change_crontab(_mark(place, agent), None)


def is_in_crontab(place: FleetDirectory, agent: Path) -> bool:
    """Return whether cron starts the agent after a reboot. Raises OSError."""
    return any(_marked(line, _mark(place, agent)) for line in _crontab())


def list_crontab_fleets(directory: Path) -> list[str]:
    """Return the fleets of agents below a directory that cron starts. Raises OSError."""
    marks = (line.rpartition("# monkey ")[2].partition(" ") for line in _crontab() if "# monkey " in line)
    return sorted({fleet for fleet, _, where in marks if where.startswith(f"{directory}/")})


def _mark(place: FleetDirectory, agent: Path | None) -> str:
    return f"# monkey {place.fleet} {place.directory}/{agent.name if agent else ''}"


def _marked(line: str, mark: str) -> bool:
    return line.endswith(mark) or (mark.endswith("/") and mark in line)


def _crontab() -> list[str]:
    """Return the lines of the crontab; none where we may have none.

    Raises OSError where it cannot be read, since no line of it may be lost.
    """
    if shutil.which("crontab") is None:
        return []
    try:
        run = subprocess.run(
            ["crontab", "-l"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROGRAM_SECONDS,
            env=read_environment(),
        )
    except subprocess.TimeoutExpired as exc:
        raise OSError("crontab -l does not answer") from exc
    if run.returncode and b"no crontab for" not in run.stderr and b"not allowed" not in run.stderr:
        raise OSError(f"crontab -l failed: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout.decode(errors="surrogateescape").splitlines() if run.returncode == 0 else []


def _change_crontab(mark: str, line: str | None) -> None:
    """Replace the line with this mark by `line`, or remove it (None); keep all other lines. Raises OSError."""
    before = _crontab()
    after = [old for old in before if not _marked(old, mark)] + ([f"{line} {mark}"] if line else [])
    if after == before:
        return
    if not after:
        command, text = ["crontab", "-r"], ""
    else:
        command, text = ["crontab", "-"], "".join(f"{one}\n" for one in after)
    data = text.encode(errors="surrogateescape")
    run = subprocess.run(command, input=data, capture_output=True, timeout=PROGRAM_SECONDS)
    if run.returncode:
        raise OSError(f"crontab failed: {run.stderr.decode(errors='replace').strip()}")
