"""Metrics of other languages: the programs in the documentation, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.metrics.records import Records
from monkey.metrics.summary import MetricSummary

DOCS = Path(__file__).parents[3] / "docs/metrics.md"


def program(language: str) -> str:
    """Return the documentation's program."""
    section = DOCS.read_text().split("\n## From another language\n")[1].split("\n## ")[0]
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize(
    ("language", "tool", "file"), [("bash", "bash", "shell"), ("cpp", "g++", "native"), ("js", "node", "js")]
)
def test_what_the_documentation_shows_is_read(
    require: Callable[[str], str], tmp_path: Path, language: str, tool: str, file: str
) -> None:
    source, metrics = tmp_path / f"program.{language}", tmp_path / "metrics"
    source.write_text(program(language))
    command = [require(tool), str(source)]
    if language == "cpp":
        compiled = tmp_path / "compiled"
        subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "-o", compiled], check=True)
        command = [str(compiled)]
    metrics.mkdir()
    outside = {name: value for name, value in os.environ.items() if name != "MONKEY_METRICS_DIR"}
    for env in (outside, {**outside, "MONKEY_METRICS_DIR": str(metrics)}):
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("", "")
    data = (metrics / f"{file}.jsonl").read_bytes()
    assert sorted(path.name for path in tmp_path.rglob("*.jsonl")) == [f"{file}.jsonl"]
    summary = MetricSummary()
    summary.feed(data)
    told = summary.finish()
    loss = told["loss"]
    assert (loss["last"], loss["max"], loss["step"], loss["count"], loss["nonfinite"]) == (None, 0.4, 4, 3, 1)
    assert told["epochs"]["last"] == 3 and told.keys() == {"loss", "epochs"} and summary.garbage == 0
    records = Records({"job": "a"})
    points = records.convert(data).splitlines()
    assert (records.garbage, records.nonfinite) == (0, 1)
    fields = [point.split(b" ")[1].split(b",")[1] for point in points]
    assert fields == [b"loss=0.4", b"loss=0.3", b"loss=0.2", b"epochs=3.0"]
    times = [int(point.split(b" ")[2]) for point in points]
    assert times == sorted(set(times)) and 1.7e18 < times[0] < 4e18
