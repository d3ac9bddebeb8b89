"""The sweep `digits` of specs/, run for real once, and what its store says of it as points."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from monkey.metrics import names
from monkey.metrics.points import job_point, machine_of, metric_tags
from monkey.metrics.records import Records
from tests.acceptance.shop import Shop

ROOT = Path(__file__).parents[1]
METRIC = "val_accuracy"


@dataclass(frozen=True)
class Digits:
    """The sweep, when it is over."""

    shop: Shop
    #: Of `monkey results --json`, best first.
    rows: list[dict[str, Any]]

    @cached_property
    def lines(self) -> bytes:
        """Return its points."""
        return b"".join(line for row in self.rows for line in self._of(row))

    @cached_property
    def ends(self) -> list[float]:
        """Return when each job ended, in seconds since the epoch."""
        return [self._end(row["job"])[1]["at"] for row in self.rows]

    def _end(self, job: str) -> tuple[int, dict[str, Any]]:
        """Return the last entry of a job's log, and its number; before it, a claim may have been given back."""
        last = max(self.shop.root.glob(f".monkey/store/projects/*/jobs/{job}/[0-9]*"))
        return int(last.name), json.loads(last.read_text())

    def _of(self, row: dict[str, Any]) -> Iterator[bytes]:
        job, (k, end) = row["job"], self._end(row["job"])
        host, began = machine_of(end["agent"]), end["at"] - end["seconds"]
        about = {"attempt": row["attempt"], "host": host, "parameters": row["parameters"], "count": len(self.rows)}
        about |= {"metric": METRIC, "maximize": True}
        yield job_point("digits", job, names.RUNNING, began, k - 1, **about)
        told = {name: end[name] for name in ("exit_code", "seconds")}
        yield job_point("digits", job, names.SUCCEEDED, end["at"], k, **about, **told, summary=end["metrics"])
        for file in self.shop.root.glob(f".monkey/store/projects/*/jobs/{job}/out/{end['out']:08}/metrics/*.jsonl"):
            yield Records(metric_tags("digits", job, row["attempt"], host, file.name)).convert(file.read_bytes())


def run(base: Path) -> Digits:
    """Apply the spec as it is, and wait until all its jobs have succeeded."""
    shop = Shop(base)
    shutil.copytree(ROOT / "specs", shop.root / "specs")
    shop.run("apply", "specs/digits.yaml", "--yes")
    rows = shop.json("results", "digits")
    assert {row["state"] for row in rows} == {"succeeded"}
    return Digits(shop, rows)
