"""`expires:` as it is written, read and said; and where it must be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.job.expires import Expiry, format_utc_time, parse_expiry
from monkey.spec.project.provider import Provider
from monkey.spec.project.provider import parse_provider as read_provider
from monkey.spec.sweep.load import load_spec
from monkey.spec.yaml.mistakes import MistakesError

AT = 1796148000.0  # 2026-12-01 18:00 UTC
AWS = {"type": "aws", "region": "eu-central-1", "instance_type": "g5.xlarge"}


@pytest.mark.parametrize(
    ("written", "said", "until"),
    [
        ("12h", "12h", 43_300.0),
        (90, "1m30s", 190.0),
        ("2026-12-01T18:00:00Z", "2026-12-01 18:00 UTC", AT),
        ("2026-12-01 19:00+01:00", "2026-12-01 18:00 UTC", AT),
    ],
)
def test_a_time_is_read_said_and_written_down(written: str | float, said: str, until: float) -> None:
    expires = parse_expiry(written)
    assert (expires.words(), expires.until(100.0)) == (said, until)
    assert Expiry.from_json(expires.to_json()) == expires


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-12-01T18:00:00", "a time with its zone"),
        ("2026-12-01", "a time with its zone"),
        ("soon", "a duration or a time"),
        ("9999-12-31T23:59:59-01:00", "a duration or a time"),
        (0, "a duration or a time"),
        ([1], "a duration or a time"),
    ],
)
def test_what_is_no_time_is_refused_with_what_to_write(written: object, expected: str) -> None:
    with pytest.raises(MistakesError, match=f"expected {expected}, found") as refused:
        parse_expiry(written)
    assert "2026-12-01T18:00:00Z" in (refused.value.mistakes[0].hint or "")


def test_times_are_said_without_the_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert format_utc_time(AT) == "2026-12-01 18:00 UTC"


def problems(root: Path, spec: str, **cloud: object) -> list[tuple[int, str]]:
    """Return lines and messages of what is wrong with a spec that may run here and on machines that are rented."""
    path = root / "specs.yaml"
    path.write_text("command: python train.py\n" + spec)
    known = {"local": Provider(), "cloud": read_provider({**AWS, **cloud})}
    try:
        load_spec(path, root, known)
    except SpecError as exc:
        return [(problem.line, problem.message) for problem in exc.problems]
    return []


def test_machines_that_are_paid_for_must_end(tmp_path: Path) -> None:
    found = problems(tmp_path, "provider: [local, cloud]\n")
    assert found == [(2, "machines of provider 'cloud' are paid for: expected expires, found none")]
    assert problems(tmp_path, "provider: local\n") == []
    assert problems(tmp_path, "provider: cloud\nexpires: 7d\n") == []
    late = "expected at most 7d on provider 'cloud', found 8d"
    assert problems(tmp_path, "provider: cloud\nexpires: 8d\n") == [(3, late)]
    assert problems(tmp_path, "provider: cloud\nexpires: 8d\n", max_lifetime="9d") == []
    short = "expected 10m or more on provider 'cloud', found 9m59s"
    assert problems(tmp_path, "provider: [local, cloud]\nexpires: 9m59s\n") == [(3, short)]
    assert problems(tmp_path, "provider: cloud\nexpires: 10m\n") == []
    assert problems(tmp_path, "provider: local\nexpires: 1s\n") == []
    assert problems(tmp_path, "provider: local\nexpires: 8d\n") == [], "what costs nothing may take its time"
