"""Notices over HTTP: what a real server is told, and what its answers mean."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import socket
from collections.abc import Iterator

import pytest

from monkey.fleet.secret_values import SecretValues
from monkey.spec.project.notify_channel import NotifyChannel
from monkey_agent.notifications import webhook
from monkey_agent.notifications.undelivered_notice import UndeliveredNotice
from tests.hook import Hook, hook

NOTICE = {"event": "e" * 32, "kind": "failed", "text": "sweep <a> & b has failed: ä", "jobs": {"total": 3}}


@pytest.fixture
def server() -> Iterator[Hook]:
    with hook() as state:
        yield state


def send(channel: NotifyChannel, **secrets: str) -> None:
    asyncio.run(webhook.deliver_notice(channel, NOTICE, SecretValues({"HOME": "/nonexistent", **secrets})))


def refused(channel: NotifyChannel, **secrets: str) -> tuple[str, bool]:
    with pytest.raises(UndeliveredNotice) as caught:
        send(channel, **secrets)
    return str(caught.value), caught.value.final


def test_a_webhook_gets_the_notice_its_id_and_a_signature(server: Hook) -> None:
    send(NotifyChannel("webhook", server.url))
    send(NotifyChannel("webhook", "HOOK", key="KEY"), HOOK=server.url, KEY="sesame")
    plain, signed = server.told
    assert plain.body == signed.body == NOTICE and plain.path == "/hook"
    assert plain.headers["Idempotency-Key"] == NOTICE["event"] and "X-Monkey-Signature" not in plain.headers
    expected = hmac.new(b"sesame", signed.raw, hashlib.sha256).hexdigest()
    assert signed.headers["X-Monkey-Signature"] == f"sha256={expected}"
    assert signed.headers["Content-Type"] == "application/json"


def test_slack_gets_a_text_in_its_own_markup(server: Hook) -> None:
    send(NotifyChannel("slack", "SLACK"), SLACK=server.url)
    assert server.told[0].body == {"text": "sweep &lt;a&gt; &amp; b has failed: ä"}


def test_no_notice_has_a_credential(server: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NOTICE, "text", f"it failed: hf_{'a' * 34} is no token of yours")
    send(NotifyChannel("slack", "SLACK"), SLACK=server.url)
    assert server.told[0].body == {"text": "it failed: *** is no token of yours"}


def test_what_is_final_and_what_may_be_taken_later(server: Hook) -> None:
    for code, final in ((500, False), (503, False), (429, False), (408, False), (400, True), (404, True), (302, True)):
        server.answers = [code]
        assert refused(NotifyChannel("webhook", server.url)) == (f"it answered {code}", final)
    server.answers = [0]
    assert refused(NotifyChannel("webhook", server.url)) == ("no answer (RemoteDisconnected)", False)
    assert [told.path for told in server.told] == ["/hook"] * 8  # nobody follows a redirect


def test_a_server_that_hangs_is_not_waited_for(server: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "SILENT", 0.3)
    server.answer.clear()
    told, final = refused(NotifyChannel("webhook", server.url))
    assert told.startswith("no answer") and not final
    monkeypatch.setattr(webhook, "SILENT", 60)
    monkeypatch.setattr(webhook, "WHOLE", 0.3)
    assert refused(NotifyChannel("webhook", server.url)) == ("no answer within 0 s", False)


def test_messages_name_secrets_and_never_tell_them() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/T000/B000/xyzzy"
        said = [refused(NotifyChannel("slack", "SLACK"), SLACK=url)]
    said += [
        refused(NotifyChannel("slack", "SLACK"), SLACK=to)
        for to in ("file:///etc/xyzzy", "http://[xyzzy", "http:// xyzzy")
    ]
    said.append(refused(NotifyChannel("slack", "SLACK")))
    assert [final for _, final in said] == [False, True, True, True, False]
    assert said[0][0] == "Connection refused" and "SLACK" in said[1][0] and "SLACK" in said[4][0]
    assert "xyzzy" not in str(said)
