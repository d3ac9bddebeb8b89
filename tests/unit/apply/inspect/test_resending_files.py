"""What a backfill reads of an attempt whose files are in its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from monkey.apply.inspect.job_history import read_attempts
from monkey.apply.inspect.resending import BackfillResult, _fetch, _send_samples, _Sender
from monkey.cli.render.job_details import _locate_files
from monkey.protocol.record.end_files import EndFiles
from monkey.spec.project.influx_settings import InfluxSettings
from tests.unit.apply.small_project import Pen, apply, opened, write_project

SAMPLE = b'{"t":1700000000.5,"m":{"cpu_percent":50}}\n'


def test_metrics_and_samples_of_an_end_are_sent_again(tmp_path: Path) -> None:
    write_project(tmp_path)
    files = EndFiles(b"said", {"0.jsonl": b"logged\n"}, SAMPLE)

    async def main() -> None:
        async with opened(tmp_path) as world:
            job = (await apply(world)).wanted[0].desired.table.ids[0]
            pen = Pen(world)
            k = await pen.begin(job)
            await pen.end(job, files=files.to_json())
            (attempt,) = await read_attempts(world, job)
            await _fetch(world, job, attempt, tmp_path)
            assert (tmp_path / str(k) / "0.jsonl").read_bytes() == b"logged\n"
            sender = _Sender(InfluxSettings.__new__(InfluxSettings), None, BackfillResult())  # type: ignore[arg-type]  # it does not send
            await _send_samples(world, job, attempt, sender)
            assert b"cpu_percent=50" in b"".join(sender._waiting)
            # `monkey info` names the object that has them.
            view = (await world.reader().read(["small"])).sweeps["small"]
            place = _locate_files(world.keys, job, view.view(job), [attempt])
            assert b"logged" in await world.at.get(place)

    asyncio.run(main())
