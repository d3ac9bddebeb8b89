"""The program that runs containers on this machine: the first that works, or the one that the provider names.

A plan runs this on hosts, too: it needs nothing but Python.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

#: Kind of runtime to names of its program; the kinds and their order are those of `runtime_kind.RUNTIME_KINDS`.
RUNTIME_PROGRAMS: dict[str, tuple[str, ...]] = {
    "apptainer": ("apptainer", "singularity"),
    "podman": ("podman",),
    "docker": ("docker",),
    "charliecloud": ("ch-run",),
}
#: Kind of runtime to arguments that succeed only where it works: podman opens its storage, docker asks its daemon.
_PROBES: dict[str, tuple[str, ...]] = {
    "apptainer": ("--version",),
    "podman": ("info", "--format", "{{.Host.OCIRuntime.Name}}"),
    "docker": ("version", "--format", "{{.Server.Version}}"),
    "charliecloud": ("--version",),
}
#: Programs that a kind needs besides its own.
_BESIDE: dict[str, tuple[str, ...]] = {"charliecloud": ("ch-image", "setpriv", "unshare")}
#: Seconds that a runtime may take to answer, and characters of its answer that an error quotes.
_PATIENCE_SECONDS, _QUOTED = 30.0, 200


@dataclass(frozen=True)
class ContainerRuntime:
    """A runtime of this machine, and the path of its program."""

    kind: str
    program: str


def find_runtime(env: Mapping[str, str], named: str | None = None) -> ContainerRuntime:
    """Return the first runtime on the PATH of `env` that works; where one is `named`, that one.

    Runs programs, which takes up to a second. Raises LookupError, which says what is wrong with each that is there.
    """
    troubles = []
    for kind in [named] if named else RUNTIME_PROGRAMS:
        if program := _find_program(RUNTIME_PROGRAMS[kind], env):
            trouble = probe_runtime(found := ContainerRuntime(kind, program), env)
            if not trouble:
                return found
            troubles.append(f"{kind} does not work: {trouble}")
    if troubles:
        raise LookupError(f"{'; '.join(troubles)} (hint: {_suggest(named, repair=True)})")
    missing = named or ", ".join(name for names in RUNTIME_PROGRAMS.values() for name in names)
    what = f"there is no {missing} here, which `runtime:` names" if named else f"this machine has none of {missing}"
    raise LookupError(f"{what} (hint: {_suggest(named)})")


def _suggest(named: str | None, *, repair: bool = False) -> str:
    if named:
        return f"{'repair' if repair else 'install'} {named}, or name another `runtime:` in monkey.yaml"
    return "repair it, or install another runtime" if repair else "install one of them"


def _find_program(names: tuple[str, ...], env: Mapping[str, str]) -> str:
    found = (shutil.which(name, path=env.get("PATH", os.defpath)) for name in names)
    program = next(filter(None, found), "")
    return program and os.path.abspath(program)  # noqa: PTH100 - a link's name may matter


def probe_runtime(runtime: ContainerRuntime, env: Mapping[str, str]) -> str:
    """Return why a runtime does not work; "" where it answers, though it may start no container."""
    for beside in _BESIDE.get(runtime.kind, ()):
        if not _find_program((beside,), env):
            return f"there is no {beside}"
    try:
        run = subprocess.run(
            [runtime.program, *_PROBES[runtime.kind]],
            env={"USER": "monkey", **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it does not answer within {_PATIENCE_SECONDS:g} seconds"
    except OSError as exc:
        return exc.strerror or str(exc)
    said = [line.strip() for line in run.stderr.decode(errors="replace").splitlines() if line.strip()]
    return (said[-1][:_QUOTED] if said else f"exit code {run.returncode}") if run.returncode else ""
