"""Short ways to a spec, and to what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from monkey.errors import Problem, SpecError
from monkey.spec.job.job_table import JobTable, ParameterValue
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.load import parse_spec
from monkey.spec.sweep.models import Spec

HERE = Path(__file__).parent


def spec(text: str, root: Path = HERE) -> Spec:
    """Read a spec; lines that every spec needs are added where they are missing."""
    text = dedent(text)
    if "command:" not in text:
        text += "\ncommand: 'true'\n"
    return parse_spec(text, "specs/it.yaml", root)


def table(text: str) -> JobTable:
    return expand_spec(spec(text))[0]


def jobs(text: str) -> list[dict[str, ParameterValue]]:
    """Return the parameters of all jobs."""
    made = table(text)
    return [made.parameters(row) for row in range(len(made))]


def problems(text: str, root: Path = HERE) -> list[Problem]:
    """Return what is wrong with a spec, also what shows only when it is expanded."""
    with pytest.raises(SpecError) as caught:
        expand_spec(spec(text, root))
    return caught.value.problems


def problem(text: str, root: Path = HERE) -> Problem:
    """Return the only thing that is wrong."""
    found = problems(text, root)
    assert len(found) == 1, "\n".join(map(str, found))
    return found[0]
