"""An apply that rents machines over a home's line: the agent's code goes up in parts, and is resumed after a break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monkey.plan.sizes import format_size
from tests.clouds.account import Account
from tests.clouds.cli import BUCKET, SLOWLY, STORE, group, project, rent
from tests.slow_line import SlowLine
from tests.trusting import trust

pytestmark = pytest.mark.slow

#: Bytes a second of 2 Mbit/s.
SLOW = 2e6 / 8
MIB = 1 << 20


def count_there(aws: Account) -> int:
    """Return the bytes that the bucket has of the agent's code."""
    found = aws.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="team/bundle/")
    return sum(each["Size"] for each in found.get("Contents", ()))


def test_an_apply_by_a_line_of_2_mbit_goes_on_after_a_break(
    aws: Account, require: Callable[[str], str], tmp_path: Path
) -> None:
    require("pulumi")
    shop = project(aws, tmp_path, expires="50m")
    rent(shop, aws.image())
    with SlowLine(aws.wire.upstream.geturl()) as line:
        trust(line.endpoint, env=shop.env)
        config = shop.root / "monkey.yaml"
        config.write_text(config.read_text().replace(STORE, f"s3://{BUCKET}/team?endpoint={line.endpoint}"))
        shop.run("plan", patience=SLOWLY)  # builds the agent's code, which takes a while
        line.rate = SLOW
        line.breaks_at = line.sent + 6 * MIB
        broken = shop.run("apply", "--detach", "--yes", code=1, patience=SLOWLY)
        there = count_there(aws)
        assert MIB < there < 6 * MIB, broken.stderr

        line.breaks_at = 0
        done = shop.run("apply", "--detach", "--yes", patience=SLOWLY)
        missing = format_size(count_there(aws) - there)
        assert f"cloud: {missing} of the agent's code uploaded" in done.stdout, "what is up is not sent again"
        assert "agent's code: uploading: " in done.stderr and f" of {missing}, " in done.stderr, "as of data"
        assert len(group(aws)["Instances"]) == 4
