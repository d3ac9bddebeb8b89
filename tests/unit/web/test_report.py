"""A report: the same answers as the server's, unpacked by a second reader, in a file of which no text can break out."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import zlib
from array import array
from html.parser import HTMLParser
from math import isclose, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.protocol.entries import ClaimEnd
from monkey.protocol.record.shipment import METRICS
from monkey.web.curve_cache import DrawnCurve
from monkey.web.page_server import load_assets
from monkey.web.report.packed_curves import limit_points, pack_curves
from monkey.web.report.report_data import ReportData, gather_report
from monkey.web.report.report_file import build_report, join_modules
from tests.unit.apply.small_project import Pen, opened
from tests.unit.web.pages import serving

EVIL = "</script><script>window.pwned=1</script>\u2028<!--"
SPEC = f"""\
name: small
command: python3 train.py --lr {{lr}}
parameters:
  lr: [1, 2, {json.dumps(EVIL)}]
metric: {{name: loss}}
"""


class Elements(HTMLParser):
    """The elements of a page as HTML has them, with the text of scripts and styles."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.inside = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            tag, about, text = self.found.pop()
            self.found.append((tag, about, text + data))

    def read_all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(about, text) for name, about, text in self.found if name == tag]


def unpack(page: bytes) -> dict[str, Any]:
    ((_, block),) = [one for one in Elements(page).read_all("script") if one[0].get("id") == "answers"]
    told: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(block, validate=True)))
    return told


async def play(pen: Pen, jobs: list[str]) -> None:
    """One succeeds with a curve, one fails, one runs; each says what it should not."""
    k = await pen.begin(jobs[0])
    lines = "".join(f'{{"t":1,"step":{3 * step},"m":{{"loss":{1 / (1 + step)}}}}}\n' for step in range(2000))
    await pen.world.at.put(f"{pen.world.keys.out(jobs[0], k)}{METRICS}0.jsonl", lines.encode())
    loss = {"last": 0.0005, "min": 0.0005, "max": 1.0, "count": 2000, "step": 5997}
    await pen.end(jobs[0], metrics={"loss": loss}, outputs={"model.txt": "ab" * 32})
    await pen.begin(jobs[2])
    await pen.end(jobs[2], ClaimEnd.FAILED, reason=EVIL, exit_code=1, log_tail=["first", EVIL])
    await pen.begin(jobs[1])


def test_it_has_the_server_s_answers_and_the_same_bytes_again(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, SPEC) as page:
            await play(page.pen, page.jobs)
            first = build_report(await gather_report(page.world, ["small"]))
            told = unpack(first)
            shown = await page.get("sweep/small?since=0")
            for name in ("ids", "parameters"):
                assert told["answers"]["sweep/small"]["table"][name] == shown["table"][name]
            assert told["answers"]["sweep/small"]["metrics"] == shown["metrics"]
            assert told["answers"]["failures/small"] == await page.get("failures/small")
            for job in page.jobs:
                shown = {**await page.get(f"job/small/{job}"), "started": None}
                del shown["metrics"]  # the table has them
                for output in shown["outputs"]:
                    output["sha256"] = output["sha256"][:12]  # the page shows no more
                assert told["answers"][f"job/small/{job}"] == shown
            assert told["answers"][f"job/small/{page.jobs[0]}"]["outputs"][0]["path"] == "model.txt"
            project = await page.get("sweeps")
            assert told["answers"]["sweeps"]["sweeps"] == project["sweeps"]
            assert page.guard.token.encode() not in first and page.world.at.url not in json.dumps(
                told["answers"]["sweeps"]
            )
        async with opened(tmp_path) as world:  # another process, at another time
            assert build_report(await gather_report(world, ["small"])) == first

    asyncio.run(main())


def test_credentials_in_the_env_and_the_command_are_not_sent_along(tmp_path: Path) -> None:
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    env = f"env: {{T: {token}, X: '1'}}\n"
    spec = f"name: small\ncommand: python3 train.py --lr {{lr}} {token}\nparameters: {{lr: [1]}}\n{env}"

    async def main() -> dict[str, Any]:
        async with serving(tmp_path, spec) as page:
            return unpack(build_report(await gather_report(page.world, ["small"])))

    told = asyncio.run(main())
    (recipe,) = [one["configuration"]["recipe"] for key, one in told["answers"].items() if key.startswith("job/")]
    hidden = "(not shown: it holds a GitHub token)"
    assert (recipe["env T"], recipe["env X"], recipe["command"]) == (hidden, "1", hidden)
    assert token not in json.dumps(told)


def test_a_curve_of_a_job_keeps_its_points(tmp_path: Path) -> None:
    async def main() -> dict[str, Any]:
        async with serving(tmp_path, SPEC, known=False) as page:
            await play(page.pen, page.jobs)
            return unpack(build_report(await gather_report(page.world, ["small"])))["curves"]["small"]

    packed = asyncio.run(main())
    (steps, values), logged = read_curve(packed, 0), packed["of"][0][2]
    assert packed["metrics"] == ["loss"] and logged == 2000
    assert 100 <= len(steps) <= 600 and (steps[0], steps[-1]) == (0, 5997)
    assert all(isclose(value, 1 / (1 + step / 3), rel_tol=1e-4) for step, value in zip(steps, values, strict=True))


def read_curve(packed: dict[str, Any], at: int) -> tuple[list[int], list[float]]:
    gaps, values = packed["gaps"][at], list[float]()
    if isinstance(gaps, dict):
        steps = [gaps["from"] + place * gaps["by"] for place in range(gaps["count"])]
    else:
        steps = [sum(gaps[: place + 1]) for place in range(len(gaps))]
    for whole, power in zip(packed["digits"][at], packed["powers"][at], strict=True):
        values.append(nan if whole is None else float(f"{whole}e{power}"))
    return steps, values


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=1, max_size=50))
def test_values_keep_five_digits_or_a_ten_thousandth_of_what_they_span(values: list[float]) -> None:
    packed = pack_curves({"job": {"loss": DrawnCurve(array("d", range(len(values))), array("d", values))}}, 100)
    steps, read = read_curve(packed, 0)
    assert steps == list(range(len(values)))
    for value, other in zip(values, read, strict=True):
        assert other != other if value != value or abs(value) == float("inf") else isclose(value, other, rel_tol=6e-5)


def test_values_that_are_close_together_keep_seven_digits() -> None:
    curve = DrawnCurve(array("d", [0, 5, 6]), array("d", [1000.001, 1000.002, 1000.004]))
    assert read_curve(pack_curves({"job": {"loss": curve}}, 100), 0) == ([0, 5, 6], [1000.001, 1000.002, 1000.004])


def test_few_curves_keep_more_points_and_none_fewer_than_a_hundred() -> None:
    assert [limit_points(curves) for curves in (0, 3, 1_000, 3_000, 10**6)] == [600, 600, 300, 100, 100]
    flat = DrawnCurve(array("d", range(1000)), array("d", [1.0] * 1000))
    assert len(pack_curves({"job": {"flat": flat}}, 100)["digits"][0]) == 100


def test_no_text_of_a_sweep_is_html_and_the_policy_names_each_script() -> None:
    data = ReportData({"sweeps": {"project": EVIL, "sweeps": []}, EVIL: EVIL})
    page, empty = build_report(data), build_report(ReportData())
    assert unpack(page)["answers"] == data.answers
    block = re.compile(rb'(?<=id="answers">)[A-Za-z0-9+/=]+(?=</script>)')
    assert block.sub(b"", page) == block.sub(b"", empty), "all that differs is one word of base64"
    elements = Elements(page)
    policy = dict(
        one.strip().split(" ", 1)
        for about, _ in elements.read_all("meta")
        if about.get("http-equiv") == "Content-Security-Policy"
        for one in str(about["content"]).split(";")
    )
    assert policy["default-src"] == "'none'" and "connect-src" not in policy
    for tag in ("script", "style"):
        texts = [text for about, text in elements.read_all(tag) if about.get("id") != "answers"]
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]
        assert policy[f"{tag}-src"].split() == hashes and len(hashes) == 2
    assert not [about for _, about, _ in elements.found if {"src", "style", "onload"} & about.keys()]
    assert [about["href"] for about, _ in elements.read_all("link")] == ["data:,"]


def test_modules_are_joined_each_after_what_it_imports() -> None:
    assets = {
        "main.js": 'import { part as piece, Whole } from "./parts.js";\nrun(piece(), Whole);\n',
        "parts.js": 'import { h } from "./other.js";\nexport function part() {}\nexport class Whole {}\n',
        "other.js": "const x=1;export{x as h};",
    }
    joined = join_modules(assets, "main.js")
    names = re.findall(r'^modules\["(\S+)"\] =', joined, re.MULTILINE)
    assert names == ["other.js", "parts.js", "main.js"]
    assert 'const { part: piece, Whole } = modules["parts.js"];' in joined
    assert "return { h: x };" in joined and "return { part: part, Whole: Whole };" in joined


def test_nothing_of_a_module_s_imports_and_exports_is_left() -> None:
    assets = {name: body.decode() for name, body in load_assets().items() if isinstance(body, bytes)}
    joined = join_modules(assets, "main.js")
    assert not re.findall(r"^(?:import|export)\b", joined, re.MULTILINE)
    ours = {name for name in assets if name.endswith(".js")} - {"uPlot.js"}
    assert set(re.findall(r'^modules\["(\S+)"\] =', joined, re.MULTILINE)) == ours


@pytest.mark.parametrize("name", sorted(load_assets()))
def test_no_asset_ends_its_own_element(name: str) -> None:
    body = load_assets()[name]
    assert isinstance(body, bytes)
    assert name.endswith(".html") or not re.search(rb"</(script|style)|<!--", body, re.IGNORECASE)
