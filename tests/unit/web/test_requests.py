"""What the page costs on a bucket, where each request is paid: so many a reading, however many jobs there are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monkey.web.live_store import LiveStore
from tests.bucket import FakeBucket
from tests.page.serving import end_all
from tests.unit.apply.small_project import SPEC, Pen, apply, opened, write_project

#: Requests of a reading that finds nothing new: three listings, and a look for the next entry of the sweep's log.
READING = 6


@pytest.mark.parametrize("jobs", [30, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_reading_is_a_few_requests_however_many_jobs_there_are(tmp_path: Path, bucket: FakeBucket, jobs: int) -> None:
    async def main() -> None:
        async with opened(tmp_path) as world:
            wanted = (await apply(world)).wanted[0].desired.table.ids
            await end_all(world, list(wanted)[1:])
            await Pen(world, "local/other/1").begin(wanted[0])
            before = sum(bucket.counts.values())
            live = LiveStore(world)
            await live.refresh()
            first = sum(bucket.counts.values()) - before
            assert len(live.tables["small"].read_all()) == jobs
            for _ in range(5):
                await live.refresh()
            then = (sum(bucket.counts.values()) - before - first) / 5
            print(f"{jobs} jobs: {first} requests for the first reading, {then:g} for each that follows")
            assert then <= READING and first <= 3 * READING + jobs // 1_000

    write_project(tmp_path, SPEC.replace("[1, 2, 3]", f"{{range: [0, {jobs}]}}"))
    (tmp_path / "monkey.yaml").write_text(f"project: test\nstore: {bucket.url()}\n")
    asyncio.run(main())
