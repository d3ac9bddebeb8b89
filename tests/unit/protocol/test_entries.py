"""Entries of jobs' logs: what is written is what is read, and what was cut short is never a success."""

from __future__ import annotations

import json

import pytest

from monkey.protocol.entries import Claim, ClaimEnd, EndEntry, JobEntry, TornEntry, decode_entry

ENTRIES: list[Claim | EndEntry] = [
    Claim("f/h/b", 7, 3, "digits"),
    Claim("f/h/b", 8, 4, "digits", continues=True),
    EndEntry(
        ClaimEnd.SUCCEEDED,
        "f/h/b",
        7,
        "digits",
        seconds=1.5,
        at=1e9,
        out=1,
        metrics={"acc": {"last": 0.9}},
        exit_code=0,
    ),
    EndEntry(ClaimEnd.FAILED, "f/h/b", 7, reason="exit code 1", exit_code=1, log_tail=['a "quoted" line', "é\u0000"]),
    EndEntry(ClaimEnd.RELEASED, "f/h/b", 7, reason="paused", outputs={"model.npz": "0" * 64}),
    EndEntry(ClaimEnd.SUCCEEDED, "f/h/b", 7, exit_code=0, facts="0" * 64),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_written_is_read(entry: JobEntry) -> None:
    assert not isinstance(entry, TornEntry)
    assert decode_entry("k", entry.encode()) == entry


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_cut_short_at_any_byte_is_torn_and_names_its_key(entry: Claim | EndEntry) -> None:
    data = entry.encode()
    for length in range(len(data)):
        assert decode_entry("jobs/j/00000001", data[:length]) == TornEntry("jobs/j/00000001")


@pytest.mark.parametrize(
    "data",
    [
        b"null",
        b"[]",
        b'"claim"',
        b"{}",
        b'{"kind":"dance"}',
        b'{"kind":"claim"}',
        b"\xff\xfe",
        b'{"kind":"end","outcome":"won"}',
    ],
)
def test_what_is_no_entry_is_torn(data: bytes) -> None:
    assert isinstance(decode_entry("k", data), TornEntry)


CLAIM = {"kind": "claim", "agent": "f/h/b", "nonce": 1, "seq": 1, "sweep": "s"}
END = {"kind": "end", "outcome": "succeeded", "agent": "f/h/b", "nonce": 1}


@pytest.mark.parametrize(
    "body",
    [
        CLAIM | {"agent": ["f/h/b"]},
        *(CLAIM | {"agent": name} for name in ("", "../h/b", "f//b", "f/h/", "f/h\0/b", "f/\ud800/b")),
        CLAIM | {"nonce": "1"},
        CLAIM | {"seq": True},
        CLAIM | {"else": 1},
        END | {"seconds": "1"},
        END | {"at": None},
        END | {"exit_code": "x"},
        END | {"metrics": 5},
        END | {"metrics": {"acc": 0.9}},
        END | {"outputs": [1]},
        END | {"outputs": {"a": 1}},
        END | {"log_tail": 5},
        END | {"reason": 5},
    ],
)
def test_an_entry_of_a_wrong_shape_is_torn(body: dict[str, object]) -> None:
    assert isinstance(decode_entry("k", json.dumps(body).encode()), TornEntry)


def test_an_entry_nested_beyond_measure_is_torn() -> None:
    assert isinstance(decode_entry("k", b"[" * 200_000), TornEntry)
    assert isinstance(decode_entry("k", b'{"kind":' * 200_000), TornEntry)


def test_a_torn_entry_belongs_to_nobody_who_could_ever_beat() -> None:
    assert decode_entry("jobs/j/1", b"").agent.startswith("(torn)")
