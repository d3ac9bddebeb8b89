"""The dashboards as files: made by the generator, valid by Grafana's own schemas, and written as ours are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.grafana import BOARDS, NAMES, left_over

SCHEMAS = Path(__file__).parent / "schemas"
#: Kinds of panels, and the files of their schemas; all are in Grafana itself since version 10.
KINDS = {
    "timeseries": "timeseries", "stat": "stat", "table": "table", "state-timeline": "statetimeline",
    "bargauge": "bargauge", "xychart": "xychart", "trend": "trend",
}  # fmt: skip
#: The last version of this form of a dashboard's JSON: Grafana 12 and 13 write it, older ones read it.
FORM = 42
QUERY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["datasource", "refId", "rawQuery", "query", "resultFormat"],
    "properties": {
        "datasource": {"const": {"type": "influxdb", "uid": "${datasource}"}},
        "refId": {"pattern": "^[A-H]$"},
        "rawQuery": {"const": True},
        "query": {"pattern": "^SELECT "},
        "resultFormat": {"enum": ["table", "time_series"]},
        "alias": {"type": "string", "minLength": 1},
    },
}


@pytest.fixture(params=NAMES)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return a dashboard."""
    return dict(json.loads((BOARDS / f"{request.param}.json").read_text()))


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return its panels without the rows' headings."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


@pytest.mark.needs("grafana-foundation-sdk")
def test_what_is_committed_is_what_the_generator_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-W", "error", str(BOARDS / "generate.py"), str(tmp_path)], check=True, timeout=300)
    for name in NAMES:
        made, kept = tmp_path / f"{name}.json", BOARDS / f"{name}.json"
        assert made.read_text() == kept.read_text(), f"{kept} is not what `invoke dashboards` makes"


def schema(name: str, part: str = "") -> dict[str, Any]:
    """Return one of Grafana's schemas. Its `any` stands there as "an object": that is taken as any again."""

    def any_again(told: Any) -> Any:
        if isinstance(told, list):
            return [any_again(one) for one in told]
        if not isinstance(told, dict):
            return told
        if told.get("type") == "object" and told.get("additionalProperties") == {}:
            return {}
        return {key: any_again(value) for key, value in told.items()}

    read = any_again(json.loads((SCHEMAS / f"{name}.json").read_text()))
    return {**read, "$ref": f"#/definitions/{part}"} if part else read


def mistakes(value: Any, by: dict[str, Any]) -> list[str]:
    """Return how a value breaks a schema."""
    found = jsonschema.Draft7Validator(by).iter_errors(value)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in found]


def test_it_is_valid_by_grafanas_schema(board: dict[str, Any]) -> None:
    # Each panel by itself first: where one is wrong, the whole only says "none of the kinds".
    for panel in board["panels"]:
        kind = "RowPanel" if panel["type"] == "row" else "Panel"
        assert mistakes(panel, schema("dashboard", kind)) == [], panel["title"]
    assert mistakes(board, schema("dashboard")) == []
    assert board["schemaVersion"] == FORM


def test_panels_are_valid_by_the_schemas_of_their_kinds(board: dict[str, Any]) -> None:
    for panel in panels(board):
        kind = schema(KINDS[panel["type"]])["definitions"]
        parts = {"Options": panel.get("options", {}), "FieldConfig": panel["fieldConfig"]["defaults"].get("custom", {})}
        for part, value in parts.items():
            if part in kind or value:
                assert mistakes(value, schema(KINDS[panel["type"]], part)) == [], f"{panel['title']}: {part}"


def test_queries_are_written_as_ours_are(board: dict[str, Any]) -> None:
    for panel in panels(board):
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert mistakes(target, QUERY) == [], panel["title"]
            assert left_over(target["query"]) == set(), f"{panel['title']}: a variable without a format"
            if target["resultFormat"] == "table":
                tags = re.search(r".*GROUP BY (?:time\(\$__interval\), )?(.*?)(?: fill\(none\).*)?$", target["query"])
                assert tags is None or "," not in tags[1], f"{panel['title']}: Grafana mixes columns of several tags up"
            if "GROUP BY time" in target["query"]:
                assert "$timeFilter" in target["query"], f"{panel['title']}: all of time, in small pieces"


def test_a_stranger_finds_his_way(board: dict[str, Any]) -> None:
    titles = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    for panel in panels(board):
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        assert panel["datasource"] == {"type": "influxdb", "uid": "${datasource}"}
        titles += [panel["title"]]
    assert len(titles) == len(set(titles))
    for variable in board["templating"]["list"]:
        assert variable.get("description") or variable["type"] == "datasource"


def test_panels_lie_beside_each_other(board: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
    assert len(taken) == 24 * (max(y for _, y in taken) + 1), "there are gaps"


def test_links_lead_to_dashboards_that_are_there() -> None:
    uids = {json.loads((BOARDS / f"{name}.json").read_text())["uid"] for name in NAMES}
    for name in NAMES:
        linked = set(re.findall(r'"/d/([^/?"]+)', (BOARDS / f"{name}.json").read_text()))
        assert linked <= uids
