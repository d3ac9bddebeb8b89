"""The Pythons of this machine: one of the version that a spec asks for, or what to say where there is none."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterable, Mapping

#: Seconds that a program may take to tell its version.
_PATIENCE_SECONDS = 20.0
_NAME = re.compile(r"python3\.\d+")
_VERSION = re.compile(r"cpython-(3\.\d+\.\d+)-")
_ASK = "import platform; print(platform.python_version())"


async def find_interpreter(version: str | None, env: Mapping[str, str]) -> str:
    """Return a Python of the `version` ("3.12", "3.12.1"; None: ours), ours or one on the PATH of `env`.

    Raises LookupError that says which there are.
    """
    ours = "{}.{}.{}".format(*sys.version_info)
    if version is None or _fits(ours, version):
        return sys.executable
    found = {ours: sys.executable, **await _on_path(env)}
    for full, program in found.items():
        if _fits(full, version):
            return program
    hint = f"here are {_listed(found)}: set `python:` to one of them, or install it, or uv, which fetches it"
    raise LookupError(f"Python {version} is not on this machine (hint: {hint})")


async def suggest_python_version(uv: str, version: str, env: Mapping[str, str]) -> str:
    """Return a hint for who asked uv for a `version` in vain; "" where it has that: something else is wrong."""
    here = _VERSION.findall(await ask_program(uv, "python", "list", "--only-installed", env=env))
    if any(_fits(full, version) for full in here):
        return ""
    known = _VERSION.findall(await ask_program(uv, "python", "list", "--only-downloads", "--all-versions", env=env))
    if any(_fits(full, version) for full in known):
        what = f"uv knows Python {version} and could not fetch it; here are {_listed(here)}"
        return f" (hint: {what}: set `python:` to one of them, or install it on this machine)"
    minors = sorted({full.rpartition(".")[0] for full in known}, key=_key)
    fetched = f", and uv fetches {minors[0]} to {minors[-1]}" if minors else ""
    return f" (hint: here are {_listed(here)}{fetched}: set `python:` to one of them; a newer uv may know more)"


def _fits(full: str, version: str) -> bool:
    return f"{full}.".startswith(f"{version}.")


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _listed(versions: Iterable[str]) -> str:
    return ", ".join(sorted(set(versions), key=_key)) or "none"


async def _on_path(env: Mapping[str, str]) -> dict[str, str]:
    """Return version → program. Each is asked: shims stand there for versions that are not installed."""
    programs: dict[str, str] = {}
    for directory in filter(None, env.get("PATH", os.defpath).split(os.pathsep)):
        try:
            names = sorted(filter(_NAME.fullmatch, os.listdir(directory)))  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            programs.setdefault(name, f"{directory}/{name}")
    answers = await asyncio.gather(*(ask_program(program, "-c", _ASK, env=env) for program in programs.values()))
    told = zip((answer.strip() for answer in answers), programs.values(), strict=True)
    return {full: program for full, program in told if re.fullmatch(r"3\.\d+\.\d+", full)}


async def ask_program(*command: str, env: Mapping[str, str], directory: str | None = None) -> str:
    """Return what a program prints, run in `directory`; "" where it fails."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=null, stdout=pipe, stderr=null, env=dict(env), cwd=directory
        )
    except OSError:
        return ""
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _PATIENCE_SECONDS)
    except TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode(errors="replace") if process.returncode == 0 else ""
