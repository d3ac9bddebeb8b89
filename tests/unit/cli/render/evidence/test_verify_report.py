"""The report of a verification: every discrepancy that fits a screen, and no byte that a terminal would obey."""

from __future__ import annotations

import json

from monkey.apply.verify.verification_result import EvidenceKind, VerificationResult
from monkey.cli.render.evidence.verify_report import LISTED, format_verification, serialize_verification
from monkey.cli.terminal.text import Terminal, dump_json


def make_result(wrong: int) -> VerificationResult:
    result = VerificationResult(size=4096, ended=3)
    result.checked.update({EvidenceKind.OUTPUTS: 40, EvidenceKind.CODE: 1})
    for i in range(wrong):
        result.note(EvidenceKind.OUTPUTS, f"jobs/a/out/1/outputs/{i}", "sha256 " + "0" * 64, "missing", "a")
    return result


def test_all_is_well_in_one_line() -> None:
    (line,) = format_verification("digits", make_result(0), Terminal())
    assert line == (
        "digits: all as recorded (3 jobs: 1 code snapshot, 0 dataset objects, 40 outputs, 0 facts objects, 0 records; "
        "4 KiB read)."
    )
    assert serialize_verification("digits", None, make_result(0))["ok"] is True


def test_what_is_wrong_is_listed_by_kind_with_what_to_do() -> None:
    result = make_result(LISTED + 5)
    result.unfinished = 2
    lines = format_verification("digits", result, Terminal())
    assert lines[0] == f"outputs: {LISTED + 5} of 40 not as recorded"
    assert lines[1:4] == ["  jobs/a/out/1/outputs/0 (job a)", f"    expected sha256 {'0' * 64}", "    found    missing"]
    assert "  and 5 more: `--json` lists all" in lines and any(line.startswith("  hint: restore") for line in lines)
    assert lines[-1].startswith("digits: 25 things not as recorded (3 jobs:")
    assert "2 jobs without an end not checked" in lines[-1]


def test_a_hostile_store_is_shown_in_short_lines_and_as_json() -> None:
    result = VerificationResult()
    result.note(EvidenceKind.DATA, "files/\x1b[2J" + "x" * 5000, "md5\n", "\x1b]0;" + "y" * 5000)
    lines = format_verification("digits", result, Terminal())
    assert not any("\x1b" in line or "\n" in line or len(line) > 250 for line in lines)
    (wrong,) = json.loads(dump_json(serialize_verification("digits", "abc", result)))["wrong"]
    assert wrong["job"] is None and wrong["key"].startswith("files/\x1b")
