"""`metrics: grafana:`: what is a URL that a browser may open, and where links lead."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from monkey.errors import SpecError
from monkey.spec.project.grafana_links import make_grafana_link
from monkey.spec.project.project import load_project

INFLUX = "influxdb: {url: http://h, bucket: b}"


def read(root: Path, grafana: str) -> str:
    (root / "monkey.yaml").write_text(f"metrics: {{{INFLUX}, grafana: {grafana}}}\n")
    return load_project(root).grafana


def test_a_link_sets_the_dashboard_s_variables_and_its_time(tmp_path: Path) -> None:
    url = read(tmp_path, "https://lab.example/grafana/")
    parts = urlsplit(make_grafana_link(url, "a & b", since=1_790_000_000.5))
    assert (parts.netloc, parts.path) == ("lab.example", "/grafana/d/monkey-sweep")
    assert parse_qs(parts.query) == {"var-sweep": ["a & b"], "from": ["1790000000500"], "to": ["now"]}
    assert make_grafana_link(url, "a", "0" * 16).endswith(f"/d/monkey-job?var-sweep=a&var-job={'0' * 16}")
    assert not make_grafana_link("", "a")


@pytest.mark.parametrize(
    "url",
    ["3", "grafana", "'javascript:alert(1)'", "'http://me:pw@h'", "'http://h:x'", "'http://h/?a=1'", "'http://h/ x'"],
)
def test_what_is_no_address_of_a_server_is_refused_where_it_stands(url: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, url)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (1, len(f"metrics: {{{INFLUX}, grafana: ") + 1)
    assert "expected Grafana's URL" in problem.message and "https://grafana.lab" in (problem.hint or "")
