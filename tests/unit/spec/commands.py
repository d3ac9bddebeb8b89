"""Short ways to a command, to what it prints, and to what is wrong with it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import strategies as st

from monkey.spec.command.command import CommandError, JobCommand, compile_command
from monkey.spec.job.job_table import ParameterValue

PRINTF = shutil.which("printf") or "/usr/bin/printf"
NAMES = ["x", "y", "lr", "optimizer.lr"]


def compiled(command: str | list[str]) -> JobCommand:
    return compile_command(command, NAMES)


def output(command: str | list[str], **parameters: ParameterValue) -> list[str]:
    """Run a command that prints its arguments, each ended by NUL, and return them."""
    rendered = compiled(command).render(parameters)
    done = subprocess.run(rendered.argv, env={"PATH": "/usr/bin:/bin", **rendered.env}, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def refused(command: str | list[str]) -> CommandError:
    with pytest.raises(CommandError) as caught:
        compiled(command)
    return caught.value


shell_noise = st.text(st.sampled_from(list("$(){}`'\"\\;&|<>*?[]~#!\n\t -=abx%")), max_size=25)
