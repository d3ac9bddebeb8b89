"""What the page is shown: sweeps, rows and those that changed, jobs, curves, logs, machines, failures, orders."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from monkey.protocol.entries import ClaimEnd
from monkey.protocol.record.shipment import METRICS
from tests.unit.apply.small_project import SPEC, Pen
from tests.unit.web.pages import serving


def lines(*values: float, step: int = 0) -> str:
    """Return records of a metric."""
    return "".join(f'{{"t":1.0,"step":{at},"m":{{"loss":{value}}}}}\n' for at, value in enumerate(values, step))


def test_a_page_gets_all_rows_once_and_then_those_that_changed(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            first = await page.get("sweep/small")
            assert first["counts"] == {"queued": 3} and first["table"]["ids"] == "".join(page.jobs)
            assert first["table"]["parameters"] == [
                {"name": "lr", "varies": True, "values": [1, 2, 3], "texts": {}, "index": [0, 1, 2]}
            ]
            assert (await page.get(f"sweep/small?since={first['version']}"))["places"] == []
            await page.pen.begin(page.jobs[1])
            await page.pen.end(
                page.jobs[1], metrics={"loss": {"last": 0.5, "min": 0.1, "max": 1, "step": 3, "count": 3}}
            )
            await asyncio.sleep(1.1)  # without an open page, a reading is good for a second
            then = await page.get(f"sweep/small?since={first['version']}")
            assert then["places"] == [1] and then["metrics"] == {"loss": [0.5]} and "table" not in then
            assert then["counts"] == {"queued": 2, "succeeded": 1}
            assert (await page.get("sweep/small?since=99999999"))["table"]  # of a server that was here before

    asyncio.run(main())


def test_curves_of_running_and_ended_jobs(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            runs, ended, _ = page.jobs
            k = await page.pen.begin(ended)
            key = page.world.keys.out(ended, k) + METRICS + "0.jsonl"
            await page.world.at.put(key, lines(*(1 / (1 + at) for at in range(1000))).encode())
            await page.pen.end(ended, metrics={"loss": {"last": 0.001, "min": 0.001, "max": 1, "step": 9, "count": 9}})
            k = await page.pen.begin(runs)
            await page.log_metrics(runs, k, lines(3.0, 2.0))
            found = (await page.get(f"curves/small?metric=loss&points=100&jobs={runs},{ended},zz"))["curves"]
            assert found[runs] == {"growing": True, "steps": [0, 1], "values": [3, 2], "logged": 2}
            assert found[ended]["logged"] == 1000 and len(found[ended]["values"]) <= 102 and not found[ended]["growing"]
            assert found[ended]["values"][0] == 1 and found[ended]["values"][-1] == 0.001
            await page.log_metrics(runs, k, lines(1.0, step=2), at=len(lines(3.0, 2.0)))
            await asyncio.sleep(1.1)
            one = await page.get(f"job-curves/small/{runs}")
            assert one["curves"]["loss"]["values"] == [3, 2, 1]

    asyncio.run(main())


def test_a_log_is_read_from_a_byte_on_while_it_grows_and_after(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            job = page.jobs[0]
            assert await page.get(f"log/small/{job}") == {"text": "", "start": 0, "next": 0, "growing": True}
            k = await page.pen.begin(job)
            await page.pen.write(job, k, b"one\ntw")
            await asyncio.sleep(1.1)
            part = await page.get(f"log/small/{job}")
            assert part == {"text": "one\n", "start": 0, "next": 4, "growing": True}
            await page.pen.write(job, k, b"o\nthree")
            await page.pen.end(job)
            await asyncio.sleep(1.1)
            rest = await page.get(f"log/small/{job}?at={part['next']}")
            assert rest == {"text": "two\nthree", "start": 4, "next": 13, "growing": False}
            assert (await page.get(f"log/small/{job}?attempt=1"))["text"] == "one\ntwo\nthree"
            assert (await page.ask("GET", f"api/log/small/{job}?attempt=2"))[0] == 404

    asyncio.run(main())


def test_the_log_of_an_attempt_whose_agent_was_lost_is_what_it_shipped(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            job = page.jobs[0]
            k = await page.pen.begin(job)
            await page.pen.write(job, k, b"before it was lost\n")
            other = Pen(page.world, "local/zen/2")
            await other.begin(job)
            await other.write(job, k + 1, b"again\n")
            await asyncio.sleep(1.1)
            assert (await page.get(f"log/small/{job}"))["text"] == "again\n"
            assert (await page.get(f"log/small/{job}?attempt=1"))["text"] == "before it was lost\n"

    asyncio.run(main())


def test_a_job_machines_and_failures(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            job = page.jobs[0]
            await page.pen.begin(job)
            await page.pen.end(job, ClaimEnd.FAILED, reason="exit code 1", exit_code=1, log_tail=["ValueError: no"])
            shown = await page.get(f"job/small/{job}")
            assert shown["state"] == "failed" and shown["configuration"]["parameters"] == {"lr": 1}
            assert shown["configuration"]["recipe"]["command"] == "python3 train.py --lr 1"
            assert [one["outcome"] for one in shown["attempts"]] == ["failed"]
            (kind,) = await page.get("failures/small")
            assert (
                kind["jobs"] == 1
                and re.fullmatch("[0-9a-f]{6}", kind["signature"])
                and kind["rule"] is None
                and kind["last_line"] == "ValueError: no"
                and kind["job"] == job
            )
            (machine,) = await page.get("machines")
            assert machine["machine"] == "pen" and machine["alive"]
            for path in ("sweep/none", "job/small/0000000000000000", "job/none/x", "failures/..%2f..", "log/small/.."):
                assert (await page.ask("GET", f"api/{path}"))[0] == 404, path

    asyncio.run(main())


def test_orders_are_the_verbs(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, SPEC) as page:
            status, said = await page.post("orders/pause", sweep="small")
            assert status == 200 and said["said"] == "small: paused (3 jobs)"
            assert (await page.get("sweeps"))["sweeps"][0]["standing"] == "paused"
            assert (await page.post("orders/pause", sweep="small"))[1]["changed"] is False
            assert (await page.post("orders/resume", sweep="small"))[1]["changed"]
            assert (await page.post("orders/cancel", sweep="small", reason="<b>no"))[1]["changed"]
            shown = (await page.get("sweeps"))["sweeps"][0]
            assert shown["cancelled"] == "<b>no" and shown["cancelled_by"]
            assert (await page.post("orders/explode", sweep="small"))[0] == 404
            assert (await page.post("orders/pause", sweep="none"))[0] == 404
            assert (await page.post("orders/retry", sweep="small", jobs=["zz"]))[0] == 404

    asyncio.run(main())


def test_a_pause_that_stops_jobs_asks_first(tmp_path: Path) -> None:
    """It says what is lost: what ran without a checkpoint in the store."""

    async def main() -> None:
        async with serving(tmp_path, SPEC) as page:
            for job in page.jobs[:2]:
                await page.pen.begin(job)
            await page.world.at.put(page.world.keys.checkpoint(page.jobs[0], 1, 1), b"[]")
            await asyncio.sleep(1.1)  # a reading is good for a second
            status, body = await page.post("orders/pause", sweep="small")
            assert status == 409
            assert re.fullmatch(
                r"Pause small\? Running jobs that stop: 2\. Without a checkpoint in the store: 1\. "
                r"What those did so far \([0-9]+s\) is lost, unless they saved it to MONKEY_CHECKPOINT_DIR\.",
                body["ask"],
            )
            assert (await page.get("sweeps"))["sweeps"][0]["paused"] is False
            await page.world.at.put(page.world.keys.checkpoint(page.jobs[1], 1, 1), b"[]")
            status, body = await page.post("orders/pause", sweep="small")
            assert status == 409 and body["ask"].endswith(" stop: 2. Without a checkpoint in the store: none.")
            status, said = await page.post("orders/pause", sweep="small", agreed=body["ask"])
            assert status == 200 and said["said"] == "small: paused (3 jobs, 2 of them running)"

    asyncio.run(main())


def test_two_jobs_are_compared_as_monkey_diff_does(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            one, other, _ = page.jobs
            found = await page.get(f"difference/small/{one}?against={other[:8]}")
            assert found["parameters"] == [{"name": "lr", "a": 1, "b": 2}] and found["b"]["job"] == other
            assert "code" not in found and found["equal_inputs"] is False
            assert (await page.get(f"difference/small/{one}?against=small/{one}"))["equal_inputs"]
            for against, said in {"zz": "there is no", "": "expected a job", "small": "small is a revision"}.items():
                status, body = await page.ask("GET", f"api/difference/small/{one}?against={against}")
                assert status in (404, 503) and said in body["error"]

    asyncio.run(main())
