"""The check of a job's record: the summary in its end, against the metric files that it was folded from.

One attempt may log to several files, which were folded as they grew. So some fields have several right values. The
last value is that of any file. A minimum that two files share has the step of either.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from monkey.apply.verify.object_reader import ObjectReader
from monkey.metrics.history_summary import summarize_history
from monkey.metrics.record_feed import MAX_METRICS
from monkey.metrics.summary import MetricSummary
from monkey.protocol.entries import EndEntry
from monkey.protocol.layout import Keys
from monkey.protocol.record.end_files_reading import read_end_files
from monkey.protocol.record.history_parts import parse_parts, restore_history
from monkey.store.store_port import Store

Summary = Mapping[str, Mapping[str, Any]]


class RecordFault(NamedTuple):
    """What of a record is not what its metric files give."""

    expected: str
    found: str


async def check_record(end: EndEntry, keys: Keys, job: str, reader: ObjectReader) -> RecordFault | None:
    """Return what is wrong with the record in an end of a job; None where it is right. Raises StoreError, OSError."""
    ridden = None if end.files is None else (await read_end_files(reader.store, keys, job, end.out)).metrics
    prefix = keys.out(job, end.out)
    names = [item.key for item in await reader.store.list(f"{prefix}metrics/")] if ridden is None else list(ridden)
    paths = [key for key in names if "/" not in key.removeprefix(f"{prefix}metrics/")]
    if not end.metrics:
        # An attempt whose files could not all be read has no summary, and its reason says so.
        return None if not paths or end.reason else RecordFault("no metrics", f"files of metrics: {len(paths)}")
    if not paths and not end.history:
        return RecordFault(_name_some(end.metrics), "no metric file")
    own = [_fold([data], end.metrics) for data in (ridden or {}).values()]
    for key in paths if ridden is None else ():
        async with reader.bring(key) as path:
            if path is not None:
                own.append(await reader.work(path, partial(_fold_file, reader, path, end.metrics)))
    files: list[Summary] = [summary.result() for summary in own]
    if end.history:
        steps = [summary.first_step for summary in own if summary.first_step is not None]
        try:
            files.append(await _fold_history(end, keys, job, reader.store, min(steps, default=None)))
        except (ValueError, TypeError, AttributeError):
            return RecordFault("a history of attempts", f"{end.history!s:.80}")
    return compare_summary(end.metrics, files)


def _fold_file(reader: ObjectReader, path: Path, recorded: Summary) -> MetricSummary:
    return _fold(reader.read_pieces(path), recorded)


def _fold(pieces: Iterable[bytes], recorded: Summary) -> MetricSummary:
    # Those that are recorded are needed: of very many names, an attempt kept the first that it met.
    summary = MetricSummary(needed=recorded.keys())
    for piece in pieces:
        summary.feed(piece)
    summary.finish()
    return summary


async def _fold_history(end: EndEntry, keys: Keys, job: str, store: Store, until: int | None) -> Summary:
    """Return the summary of the attempts that the end's attempt continued, up to its own first step."""
    parts = parse_parts(end.history)
    with tempfile.TemporaryDirectory(prefix="monkey-verify-") as directory:
        place = Path(directory).resolve()  # noqa: ASYNC240 - a link above it, as /tmp of macOS is, is no job's
        await restore_history(store, keys, job, parts, place)
        return await asyncio.to_thread(summarize_history, parts, place, until, end.metrics.keys())


def compare_summary(recorded: Summary, files: Sequence[Summary]) -> RecordFault | None:
    """Return the first metric of a record that its files do not give, one summary a file; None where all agree."""
    for name in sorted(recorded):
        entry, parts = recorded[name], [found[name] for found in files if name in found]
        if not parts:
            return RecordFault(f"{name}: {_say(entry)}", f"{name} is in none of its metric files")
        for field, options in _list_options(parts).items():
            if entry.get(field) not in options:
                right = " or ".join(map(str, options))
                return RecordFault(f"{name}: {field} {entry.get(field)!s:.40}", f"{name}: {field} {right:.120}")
    extra = {name for found in files for name in found} - recorded.keys()
    if extra and len(recorded) < MAX_METRICS:
        return RecordFault(_name_some(recorded), f"also {_name_some(dict.fromkeys(extra))}")
    return None


def _list_options(parts: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return each field of a metric's summary to the values that are right."""
    finite = [part for part in parts if part["count"]]
    options: dict[str, list[Any]] = {name: [sum(part[name] for part in parts)] for name in ("count", "nonfinite")}
    options |= {name: [part[name] for part in parts] for name in ("last", "step")}
    chosen: tuple[tuple[str, str, Callable[[list[Any]], Any]], ...] = (
        ("min", "best_min_step", min),
        ("max", "best_max_step", max),
    )
    for name, step, choose in chosen:
        best = choose([part[name] for part in finite]) if finite else None
        options |= {name: [best], step: [part[step] for part in finite if part[name] == best] or [None]}
    return options


def _say(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {entry.get(name)!s:.40}" for name in ("last", "count"))


def _name_some(metrics: Mapping[str, Any]) -> str:
    names = sorted(metrics)
    return ", ".join(name[:40] for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
