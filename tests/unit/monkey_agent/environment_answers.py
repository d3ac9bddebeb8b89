"""What tests ask of environments."""

from __future__ import annotations

import subprocess
from pathlib import Path

from monkey_agent.environments.environment_pool import EnvironmentPool, name_environment


async def path_of(environments: EnvironmentPool, wanted: dict[str, str]) -> Path:
    """Return an environment that is used no longer than it takes to say where it is."""
    path, use = await environments.use(wanted)
    use.close()
    return path


def builds(cache: Path, wanted: dict[str, str]) -> int:
    """Return how often an environment was begun since its log was."""
    return (cache / "environments" / f"{name_environment(wanted)}.log").read_text().count(" venv ")


def answer(path: Path) -> bytes:
    """Return what the package in an environment says."""
    code = "import tiny; print(tiny.answer)"
    return subprocess.run([path / "bin" / "python", "-c", code], capture_output=True, check=True).stdout
