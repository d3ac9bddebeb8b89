"""The sweep `digits` of specs/, run for real once, with its metrics sent to an InfluxDB while it runs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.shop import Shop, until
from tests.influx import Database
from tests.trusting import trust

ROOT = Path(__file__).parents[1]
METRIC, EPOCHS = "val_accuracy", 40
#: Seconds for numpy and 36 jobs, and for what was logged to arrive, on a machine that has much else to do.
LIMIT = 600


@dataclass(frozen=True)
class Digits:
    """The sweep, when it is over."""

    shop: Shop
    #: Of `monkey results --json`, best first.
    rows: list[dict[str, Any]]
    #: When each of these ended, in seconds since the epoch.
    ends: list[float]

    def backfill(self, database: Database) -> None:
        """Have another database filled from the store."""
        _tell(self.shop, database)
        self.shop.run("backfill", "digits", patience=LIMIT)


def run(base: Path, database: Database) -> Digits:
    """Apply the spec as it is, and wait until all its jobs have succeeded and what they logged is in the database."""
    shop = Shop(base)
    try:
        return _run(shop, database)
    except BaseException:
        shop.kill_all()
        raise


def _run(shop: Shop, database: Database) -> Digits:
    shutil.copytree(ROOT / "specs", shop.root / "specs")
    _tell(shop, database)
    shop.run("apply", "specs/digits.yaml", "--yes", patience=LIMIT)
    rows = shop.json("results", "digits")
    assert {row["state"] for row in rows} == {"succeeded"}
    until(
        lambda: _logged(database) == {"loss": EPOCHS * len(rows), "test_accuracy": len(rows)},
        "all of it arrives",
        LIMIT,
    )
    query = "SELECT state FROM jobs WHERE sweep = 'digits' AND state = 'succeeded' GROUP BY job"
    until(lambda: len(database.rows(query)) == len(rows), "the ends of all jobs arrive", LIMIT)
    ends = {row["job"]: row["time"] / 1e9 for row in database.rows(query)}
    return Digits(shop, rows, [ends[row["job"]] for row in rows])


def _tell(shop: Shop, database: Database) -> None:
    told = ", ".join(f'{key}: "{value}"' for key, value in database.settings.items())
    trust(database.settings["url"], env=shop.env)
    (shop.root / "monkey.yaml").write_text(f"project: shop\nmetrics: {{influxdb: {{{told}}}}}\n")
    shop.env |= database.secrets


def _logged(database: Database) -> dict[str, int]:
    """Return how many values of two metrics are there."""
    rows = database.rows("SELECT count(loss) AS loss, count(test_accuracy) AS test_accuracy FROM metrics")
    return {name: row[name] for row in rows for name in ("loss", "test_accuracy")}
