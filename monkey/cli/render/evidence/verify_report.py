"""The report of a verification: what is not as it was recorded, by kind, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monkey.apply.verify.verification_result import Discrepancy, EvidenceKind, VerificationResult
from monkey.cli.terminal.text import Terminal, flatten_text, format_plural
from monkey.plan.sizes import format_size
from monkey.store.keys import shorten_key

#: Discrepancies of a kind that are listed; `--json` lists all.
LISTED = 20
#: Characters of what was expected, and of what was found.
_SHOWN = 120

#: What to do about a discrepancy.
_RESTORE = "restore from a copy of the store, or of the bucket's earlier versions"
ADVICE = {
    EvidenceKind.CODE: f"{_RESTORE}; `monkey info SWEEP` names the commit",
    EvidenceKind.DATA: "run `monkey push` where the data is: it sends what is missing or damaged",
    EvidenceKind.OUTPUTS: f"{_RESTORE}; else do not use these files",
    EvidenceKind.FACTS: f"{_RESTORE}; else nothing says what these results came from",
    EvidenceKind.RECORD: f"{_RESTORE}; else do not use the numbers of these jobs",
}
_NAMES = {
    EvidenceKind.CODE: "code snapshot",
    EvidenceKind.DATA: "dataset object",
    EvidenceKind.OUTPUTS: "output",
    EvidenceKind.FACTS: "facts object",
    EvidenceKind.RECORD: "record",
}


def format_verification(name: str, result: VerificationResult, to: Terminal) -> list[str]:
    """Return what is wrong, a part for each kind, and a summary line."""
    lines: list[str] = []
    for kind in EvidenceKind:
        wrong = [one for one in result.wrong if one.kind is kind]
        if wrong:
            count = f"{len(wrong):,} of {result.checked[kind]:,} not as recorded"
            lines += [f"{to.paint(str(kind), 'bold')}: {count}", *_list_wrong(wrong), f"  hint: {ADVICE[kind]}", ""]
    return [*lines, _summarize(name, result)]


def _list_wrong(wrong: Sequence[Discrepancy]) -> list[str]:
    lines = []
    for one in wrong[:LISTED]:
        job = f" (job {one.job})" if one.job else ""
        lines += [f"  {flatten_text(shorten_key(one.key) + job)}"]
        lines += [f"    expected {_cut(one.expected)}", f"    found    {_cut(one.found)}"]
    more = len(wrong) - LISTED
    return lines if more <= 0 else [*lines, f"  and {more:,} more: `--json` lists all"]


def _cut(text: str) -> str:
    text = flatten_text(text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _summarize(name: str, result: VerificationResult) -> str:
    counts = ", ".join(format_plural(result.checked[kind], _NAMES[kind]) for kind in EvidenceKind)
    jobs = format_plural(result.ended, "job")
    left = f"; {format_plural(result.unfinished, 'job')} without an end not checked" if result.unfinished else ""
    told = f"{format_plural(len(result.wrong), 'thing')} not as recorded" if result.wrong else "all as recorded"
    return f"{flatten_text(name)}: {told} ({jobs}: {counts}; {format_size(result.size)} read{left})."


def serialize_verification(sweep: str, job: str | None, result: VerificationResult) -> dict[str, Any]:
    """Return a verification for programs."""
    return {
        "sweep": sweep,
        "job": job,
        "ok": not result.wrong,
        "checked": {str(kind): result.checked[kind] for kind in EvidenceKind},
        "bytes": result.size,
        "jobs": {"ended": result.ended, "unfinished": result.unfinished},
        "wrong": [
            {
                "kind": str(one.kind),
                "key": one.key,
                "job": one.job or None,
                "expected": one.expected,
                "found": one.found,
                "advice": ADVICE[one.kind],
            }
            for one in result.wrong
        ],
    }
