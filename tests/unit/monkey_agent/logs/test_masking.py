"""Secrets never reach the store by a log, however it is cut."""

from __future__ import annotations

import asyncio
import base64
import html
import json
import os
import re
import shlex
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkey.errors import JobFailed
from monkey.store.memory import MemoryStore
from monkey_agent.logs.job_log import AttemptLog
from monkey_agent.logs.masking import LogMask
from monkey_agent.ports import AttemptEnd
from tests.loops import Run
from tests.unit.monkey_agent.body import Body, until

VALUE = "s3cr/et+v&lü€"
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n}\n-----END KEY-----\n"


def hidden(text: str, *values: str) -> str:
    """Return a text with the values masked."""
    return LogMask(values).hide(text.encode()).decode()


def test_a_value_is_masked_as_it_is_and_encoded() -> None:
    assert hidden(f"a {VALUE}{VALUE} b", VALUE) == "a ****** b"
    for form in (
        urllib.parse.quote(VALUE, safe=""),
        urllib.parse.quote_plus(VALUE),
        json.dumps(VALUE)[1:-1],
        base64.b64encode(VALUE.encode()).decode().rstrip("="),
    ):
        assert form not in hidden(f"x{form}y", VALUE)
        assert "***" in hidden(f"x{form}y", VALUE)
    for name in ("u", "us", "use", "user"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(f"{name}:{VALUE}@".encode()).decode()
            shown = hidden(text, VALUE)
            assert "***" in shown
            # Of what is left, nothing tells of the value: not even the characters that its neighbours share with it.
            before, behind = shown.split("***")
            assert before == text[: (len(name) + 1) * 8 // 6]
            assert text.endswith(behind) and len(behind) == len(text) - -(-len(f"{name}:{VALUE}".encode()) * 8 // 6)


@pytest.mark.parametrize("width", [16, 64, 76])
def test_base64_is_masked_however_its_lines_are_broken(width: int) -> None:
    value = VALUE * 9
    for name in ("", "u", "us"):
        text = base64.b64encode(f"{name}:{value} and more".encode()).decode()
        lines = [text[at : at + width] for at in range(0, len(text), width)]
        for end, indent in (("\n", ""), ("\r\n", ""), ("\n", "        ")):
            shown = hidden("key:" + "".join(f"{end}{indent}{line}" for line in lines), value)
            left = "".join(shown.split("***")[i] for i in (0, -1))
            assert shown.count("***") == 1 and len(left) < 60, shown


def test_what_quotes_a_value_does_not_hide_it() -> None:
    value = 'it\'s "5 < 6" & a/b\\c\n'
    for form in (
        urllib.parse.quote(value, safe="").lower(),
        urllib.parse.quote(urllib.parse.quote(value, safe="")),
        json.dumps(json.dumps({"key": value})),
        html.escape(value),
        repr(value),
        shlex.quote(value),
    ):
        shown = hidden(f"x {form} y", value)
        assert "***" in shown and not re.search("it.*5|6.*a.*b", shown), shown


def test_a_value_of_many_lines_is_masked_line_by_line() -> None:
    shown = hidden("".join(f"> {line}\n" for line in KEY.splitlines()), KEY)
    assert shown == "> ***\n> ***\n> ***\n> }\n> ***\n"
    assert hidden(json.dumps({"key": KEY}), KEY).count("***") >= 1
    assert "MIIE" not in hidden(json.dumps({"key": KEY}), KEY)


def test_what_is_short_is_no_secret() -> None:
    assert hidden("abc abcd", "abc") == "abc abcd"
    assert hidden("abc abcd", "abcd") == "abc ***"
    assert hidden("anything", "") == "anything"


def test_values_that_overlap_are_masked_together() -> None:
    assert hidden("xabcdefx", "abcd", "cdef") == "x***x"
    assert hidden("aaaaaaa", "aaaa") == "***"


def _told(value: str, encoded: bool) -> str:
    """Return a value as a log may show it: as it is, or in base64 with a neighbour on each side and lines."""
    if not encoded:
        return value
    text = base64.b64encode(f"{value[:2]}:{value};".encode()).decode()
    return f"{text[:7]}\n  {text[7:]}"


@given(
    values=st.lists(st.text("ab\n", min_size=4, max_size=9), min_size=1, max_size=3),
    parts=st.lists(st.one_of(st.integers(-3, 2), st.text("abc\n ", max_size=5)), max_size=12),
    cuts=st.lists(st.integers(1, 20), max_size=8),
)
def test_no_cut_lets_a_secret_through(values: list[str], parts: list[int | str], cuts: list[int]) -> None:
    text = "".join(_told(values[part % len(values)], part < 0) if isinstance(part, int) else part for part in parts)

    async def scenario() -> tuple[bytes, bytes]:
        store = MemoryStore()
        path = f"{os.environ['XDG_STATE_HOME']}.masked"
        log = AttemptLog(store, "log/", path, LogMask(values))
        cursor, pieces = log.open_cursor(), b""
        data, at = text.encode(), 0
        with open(path, "wb", buffering=0) as file:  # noqa: PTH123, ASYNC230
            for cut in [*cuts, len(data)]:
                file.write(data[at : at + cut])
                at += cut
                count, given = cursor.peek(cut)
                assert cursor.given == len(pieces)
                cursor.move(count, len(given))
                pieces += given
        await log.ship()
        tail = "\n".join(log.tail())
        assert not any(value in tail for value in values)
        return pieces, b"".join([await store.get(item.key) for item in await store.list("log/")])

    pieces, shipped = asyncio.run(scenario())
    # All at once or in pieces, it is the same log.
    assert shipped == LogMask(values).hide(text.encode())
    assert shipped.startswith(pieces)
    assert not any(value.encode() in shipped for value in values)


@pytest.mark.slow
def test_a_job_gets_its_secrets_and_others_do_not(tmp_path: Path, run: Run) -> None:
    inherited = {"PATH": os.environ["PATH"], "TOKEN": VALUE, "KEY": KEY, "OTHER": "other-secret"}

    async def scenario() -> None:
        body = Body(tmp_path, env=inherited)
        show = ["sh", "-c", 'echo "$TOKEN"; echo "$KEY"; echo "[$OTHER]"; exit 3']
        every = frozenset(inherited) - {"PATH"}
        running = await body.start(show, settings={"secrets": ["KEY", "TOKEN"]}, withheld=every)
        outcome = await running.wait()
        assert (await body.stored(running))["log/000000"].decode() == "***\n***\n[]\n"
        assert outcome.log_tail == ["***", "***", "[]"]
        running = await body.start("env", withheld=every)
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        log = (await body.stored(running))["log/000000"].decode()
        assert not any(f"\n{name}=" in f"\n{log}" for name in every)
        # As long as no sweep calls it a secret, it is a variable like others.
        running = await body.start("env")
        await running.wait()
        assert VALUE in (await body.stored(running))["log/000000"].decode()
        # Neither does a build of an environment see it.
        running = await body.start("true", environment={"setup": "env > said"}, withheld=every)
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        (said,) = body.cache.glob("environments/*/setup/said")
        assert VALUE not in said.read_text() and "PATH=" in said.read_text()
        await body.runner.close()

    run(scenario())


def test_a_secret_that_is_missing_fails_the_job(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
        with pytest.raises(JobFailed, match=r"not on this machine: TOKEN.*\.config/monkey/secrets"):
            await body.start("true", settings={"secrets": ["TOKEN"]})
        file = tmp_path / ".config/monkey/secrets"
        file.parent.mkdir(parents=True)
        file.touch(0o600)
        file.write_text("TOKEN=abcdefgh\n")  # the agent that lives finds it
        running = await body.start(["sh", "-c", "echo $TOKEN | wc -c; echo $TOKEN"], settings={"secrets": ["TOKEN"]})
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        assert (await body.stored(running))["log/000000"].split() == [b"9", b"***"]
        await body.runner.close()

    run(scenario())


def test_while_a_job_runs_only_what_may_be_a_secret_waits(tmp_path: Path, run: Run) -> None:
    async def scenario() -> None:
        body = Body(tmp_path, env={"PATH": os.environ["PATH"], "TOKEN": "abcdefgh"})
        script = f"printf 'seen abcd'; while ! [ -e {tmp_path}/go ]; do sleep 0.02; done; printf 'efgh over abc'"
        running = await body.start(["sh", "-c", script], settings={"secrets": ["TOKEN"]})

        await until(lambda: running.unshipped._log.size == len("seen abcd"))
        assert [piece.data for piece in body.runner.take_unshipped(1000)] == [b"seen "]
        (tmp_path / "go").touch()
        assert (await running.wait()).ending is AttemptEnd.SUCCEEDED
        assert b"".join((await body.stored(running)).values()) == b"seen *** over abc"
        await body.runner.close()

    run(scenario())
