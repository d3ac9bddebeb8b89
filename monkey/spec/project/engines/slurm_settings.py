"""Providers of type `slurm`: pilots that a cluster's queue starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monkey.errors import FleetError
from monkey.spec.project import ssh_host
from monkey.spec.project.engines.pilot_mistakes import PILOT_KEYS, find_pilot_mistakes
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value
from monkey.spec.yaml.units import parse_duration, parse_size

#: Keys that `sbatch` has, too, by the same names.
SBATCH_KEYS = ("partition", "account", "qos", "constraint", "reservation")
#: The keys, besides those of all providers.
SLURM_KEYS = (*PILOT_KEYS, "login", "time", *SBATCH_KEYS, "workdir", "scratch", "setup", "sbatch")
#: Where bundle, logs and credentials lie on the shared file system.
_DEFAULT_WORKDIR = "~/.monkey"
#: Seconds that a pilot has at least: it needs some to start, and some to leave.
_MIN_TIME_SECONDS = 120.0
#: A word for sbatch: no option, no blanks, nothing that a terminal heeds.
_WORD = re.compile(r"[A-Za-z0-9_(\[][A-Za-z0-9_.,:;&|*@=+()\[\]/-]{0,200}")
_GPUS = re.compile(r"(?:([A-Za-z][A-Za-z0-9_.-]{0,60}):)?([0-9]{1,3})")
#: Options of sbatch that are ours, with what to write instead.
_OURS = {
    **dict.fromkeys(("-t", "--time"), "write `time:`"),
    **dict.fromkeys(("-c", "--cpus-per-task"), "write `cpus:`"),
    **dict.fromkeys(("-p", "--partition"), "write `partition:`"),
    **dict.fromkeys(("-G", "--gpus", "--gres"), "write `gpus:`"),
    **dict.fromkeys(("--mem", "--mem-per-cpu"), "write `memory:`"),
    **dict.fromkeys(("-a", "--array"), "write `pilots:`"),
    **dict.fromkeys(("-J", "--job-name", "-n", "--ntasks", "-N", "--nodes"), "take it out: monkey sets it"),
    **dict.fromkeys(("-o", "--output", "-e", "--error", "--open-mode"), "take it out: logs lie in `workdir`"),
    **dict.fromkeys(("--export", "--signal", "--requeue", "--no-requeue", "--wrap"), "take it out: monkey sets it"),
    **dict.fromkeys(("--parsable", "--test-only", "-W", "--wait", "-D", "--chdir"), "take it out: monkey sets it"),
}


@dataclass(frozen=True)
class SlurmSettings:
    """What pilots are asked of Slurm."""

    #: Seconds that one pilot has.
    time: float
    #: The login node, as OpenSSH's client knows it; "" for `sbatch` of this machine.
    login: str = ""
    #: At most so many at once.
    pilots: int = 1
    #: Of one pilot; memory in bytes, 0 for what the partition gives.
    cpus: int = 1
    memory: int = 0
    gpus: int = 0
    #: As the cluster calls it: "a100"; "" for any.
    gpu_type: str = ""
    #: Options of sbatch, by their names.
    options: tuple[tuple[str, str], ...] = ()
    #: Options of sbatch as the user wrote them.
    sbatch: tuple[str, ...] = ()
    #: On the shared file system: bundle, logs, credentials.
    workdir: str = _DEFAULT_WORKDIR
    #: On a node's own disk: cache and state, as bash expands it; "" for $SLURM_TMPDIR, $TMPDIR, or /tmp.
    scratch: str = ""
    #: Lines that bash runs on the node before the agent.
    setup: tuple[str, ...] = ()
    #: The store's directory as the nodes see it; "" where it follows from `store:`.
    store_path: str = ""


def parse_slurm(raw: Mapping[str, Any]) -> SlurmSettings:
    """Return what an entry without mistakes says."""
    kind, count = _parse_gpus(raw.get("gpus", 0))
    return SlurmSettings(
        time=parse_duration(raw["time"]),
        login=raw.get("login", ""),
        pilots=raw.get("pilots", 1),
        cpus=raw.get("cpus", 1),
        memory=parse_size(raw["memory"]) if "memory" in raw else 0,
        gpus=count,
        gpu_type=kind,
        options=tuple((key, str(raw[key])) for key in SBATCH_KEYS if key in raw),
        sbatch=tuple(raw.get("sbatch", ())),
        workdir=raw.get("workdir", _DEFAULT_WORKDIR),
        scratch=raw.get("scratch", ""),
        setup=tuple(raw.get("setup", ())),
        store_path=raw.get("store_path", ""),
    )


def find_slurm_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield what is wrong with an entry, but for its keys and what all providers have."""
    yield from find_pilot_mistakes(raw)
    yield from _find_time_mistakes(raw)
    yield from _find_place_mistakes(raw)
    for key in SBATCH_KEYS:
        if key in raw and not _WORD.fullmatch(str(raw[key])):
            message = f"expected a word for sbatch's --{key}, found {describe_value(raw[key])}"
            yield Mistake((key,), message, "write it as sbatch takes it, without blanks")
    if "gpus" in raw and (isinstance(raw["gpus"], bool) or not _GPUS.fullmatch(str(raw["gpus"]))):
        message = f"expected a number of GPUs, found {describe_value(raw['gpus'])}"
        yield Mistake(("gpus",), message, "write 1, or a type and a number as `sinfo -o %G` shows them: a100:1")
    yield from _find_line_mistakes(raw, "setup", "a line for bash", "write setup: [module load cuda/12.4]")
    hint = "write sbatch: [--exclude=n13]"
    yield from _find_line_mistakes(raw, "sbatch", "an option of sbatch", hint)
    for at, option in enumerate(raw["sbatch"] if isinstance(raw.get("sbatch"), list) else ()):
        if isinstance(option, str) and "\n" not in option:
            yield from _find_option_mistakes(option, ("sbatch", at))


def _find_time_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    hint = "write time: 4h; at most the partition's limit, which `sinfo -o '%P %l'` shows"
    if "time" not in raw:
        yield Mistake((), "expected the time of a pilot, found none", hint)
        return
    try:
        if (seconds := parse_duration(raw["time"])) < _MIN_TIME_SECONDS:
            message = f"expected {_MIN_TIME_SECONDS / 60:g}m or more, found {seconds:g}s"
            yield Mistake(("time",), message, hint)
    except MistakesError as error:
        yield from (mistake.under(("time",)) for mistake in error.mistakes)


def _find_place_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    if "login" in raw:
        try:
            ssh_host.parse_ssh_host(raw["login"] if isinstance(raw["login"], str) else "")
        except FleetError as exc:
            message = f"expected the login node, found {describe_value(raw['login'])}"
            yield Mistake(("login",), message, exc.hint)
    workdir, scratch = raw.get("workdir", _DEFAULT_WORKDIR), raw.get("scratch", "/tmp")
    if not isinstance(workdir, str) or not re.fullmatch(r"~?/+[^/\x00-\x1f%][^\x00-\x1f%]*", workdir):
        message = f"expected a directory on the shared file system, found {describe_value(workdir)}"
        yield Mistake(("workdir",), message, f"write one below / or ~/, without '%', as {_DEFAULT_WORKDIR} is")
    elif ".." in workdir.split("/"):
        yield Mistake(("workdir",), "expected a directory without '..'", f"write one as {_DEFAULT_WORKDIR} is")
    if not isinstance(scratch, str) or not re.fullmatch(r"(?:/|\$[A-Za-z_]\w*)[A-Za-z0-9_./$-]*", scratch):
        message = f"expected a directory on the node's own disk, found {describe_value(scratch)}"
        yield Mistake(("scratch",), message, "write an absolute path, or a variable of the node: $TMPDIR")


def _find_line_mistakes(raw: Mapping[str, Any], key: str, what: str, hint: str) -> Iterator[Mistake]:
    lines = raw.get(key, [])
    if not isinstance(lines, list):
        yield Mistake((key,), f"expected a list, found {describe_value(lines)}", hint)
        return
    for at, line in enumerate(lines):
        if not isinstance(line, str) or not line.strip() or not line.isprintable():
            yield Mistake((key, at), f"expected {what}, found {describe_value(line)}", hint)


def _find_option_mistakes(option: str, path: tuple[str | int, ...]) -> Iterator[Mistake]:
    name = option.partition("=")[0] if option.startswith("--") else option[:2]
    if not re.fullmatch(r"--[a-z][a-z-]+(=.*)?|-[A-Za-z].*", option):
        message = f"expected an option of sbatch, found {describe_value(option)}"
        yield Mistake(path, message, "write it as one word: --exclude=n13")
    elif name in _OURS:
        yield Mistake(path, f"sbatch's {name} cannot be given here", _OURS[name])


def _parse_gpus(raw: Any) -> tuple[str, int]:
    found = _GPUS.fullmatch(str(raw))
    assert found is not None
    return found[1] or "", int(found[2])
