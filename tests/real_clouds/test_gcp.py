"""Machines of Google's in a real project: rented, at work, gone by themselves, and nothing left.

MONKEY_CLOUD=gcp MONKEY_CLOUD_STORE=gs://BUCKET/PREFIX MONKEY_CLOUD_PROJECT=ID pytest tests/real_clouds

takes about half an hour and some cents: one machine of MONKEY_CLOUD_TYPE (e2-small) in MONKEY_CLOUD_REGION
(europe-west4), whose price an hour is at most MONKEY_CLOUD_PRICE (0.03 USD), for an hour at most. Whatever happens,
everything is taken away at the end. Needs Pulumi with its plugin for Google: `monkey doctor` says which.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey_stacks.gcp.api import group, inventory
from monkey_stacks.gcp.api.account import open_account
from monkey_stacks.gcp.api.naming import GcpStack, name_stack
from tests.acceptance.shop import Shop, until

#: As it was before the tests' own settings: these are somebody's real keys.
THEIRS = dict(os.environ)
STORE, REGION = THEIRS.get("MONKEY_CLOUD_STORE", ""), THEIRS.get("MONKEY_CLOUD_REGION", "europe-west4")
PROJECT = THEIRS.get("MONKEY_CLOUD_PROJECT", "")
TYPE, PRICE = THEIRS.get("MONKEY_CLOUD_TYPE", "e2-small"), THEIRS.get("MONKEY_CLOUD_PRICE", "0.03")
#: Seconds for a machine to boot, do its work, find itself idle and go.
SOON = 1800.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        THEIRS.get("MONKEY_CLOUD") != "gcp" or not STORE or not PROJECT, reason="MONKEY_CLOUD=gcp asks for it"
    ),
]


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> GcpStack:
    """Return what is rented by a project of a name of its own; Google is asked with the keys that are somebody's."""
    for key, value in THEIRS.items():
        if key.startswith(("GOOGLE_", "CLOUDSDK_")) or key == "HOME":
            monkeypatch.setenv(key, value)
    return name_stack(STORE, f"monkey-test-{secrets.token_hex(3)}", "cloud")


@pytest.fixture
def shop(tmp_path: Path, ours: GcpStack) -> Iterator[Shop]:
    """Return the project; what it rented is gone afterwards, or the test fails."""
    shop = Shop(tmp_path)
    keep = {key: value for key, value in THEIRS.items() if key.startswith(("GOOGLE_", "CLOUDSDK_"))}
    shop.env |= keep | {key: THEIRS[key] for key in ("HOME", "PULUMI_HOME") if key in THEIRS}
    shop.spec("provider: cloud\nexpires: 1h\ncommand: echo {i}\noutputs: []\n", jobs=4)
    (shop.root / "monkey.yaml").write_text(
        f"project: {ours.project}\nstore: {STORE}\nproviders:\n  cloud:\n    type: gcp\n    gcp_project: {PROJECT}\n"
        f"    region: {REGION}\n    machine_type: {TYPE}\n    idle_timeout: 2m\n    price: {PRICE}\n    max_cost: 1\n"
    )
    try:
        yield shop
    finally:
        shop.run("destroy", "--yes", patience=SOON)
        assert inventory.list_stack(open_account(PROJECT, REGION), ours) == (), (
            "look at the project: something of it is left"
        )


def test_a_machine_is_rented_works_and_goes(shop: Shop, ours: GcpStack) -> None:
    assert "0 → 1" in shop.run("plan", patience=SOON).stdout
    done: subprocess.CompletedProcess[str] = shop.run("apply", "--yes", patience=SOON)
    assert "all 4 jobs succeeded" in done.stdout
    assert shop.run("plan", "--detailed-exitcode", patience=SOON).stdout.startswith("No changes")
    shop.run("audit", patience=SOON)

    def gone() -> Any:
        there = group.find_group(open_account(PROJECT, REGION), ours)
        return there is not None and not there.desired and not there.counted

    until(gone, "the machine does not go", SOON, step=15)
