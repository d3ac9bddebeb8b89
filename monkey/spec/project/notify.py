"""`notify:` in monkey.yaml: who is told when a sweep has ended, or does not go on. Secrets are named, never held."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from monkey.spec.yaml.environment_names import is_needed
from monkey.spec.yaml.mistakes import Mistake, Mistakes, describe, suggest
from monkey.spec.yaml.units import duration

#: What can be told, in the order in which it is documented.
EVENTS = ("finished", "failed", "stalled")
KINDS = ("webhook", "slack")
_KEYS = (*KINDS, "on", "key", "after")
#: Seconds in which nothing of a sweep ran, though it has jobs left and agents live.
STALLED = 600.0
_LEAST_STALLED = 60.0
#: Those of one project.
MOST = 20
_SECRET = re.compile(r"[A-Z_][A-Z0-9_]{0,63}\Z")
_EXAMPLE = "write - {slack: SLACK_WEBHOOK, on: [failed]}"


@dataclass(frozen=True)
class Channel:
    """One way to tell people."""

    #: One of KINDS.
    kind: str
    #: A URL, or the name of the secret that is one.
    to: str
    on: tuple[str, ...] = EVENTS
    #: Name of the secret that webhooks are signed with; "" for none.
    key: str = ""
    #: Seconds without anything running after which a sweep has stalled.
    after: float = STALLED

    @property
    def named(self) -> bool:
        """Is `to` the name of a secret?"""
        return _SECRET.match(self.to) is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that whoever sends must know."""
        return tuple(filter(None, (self.to if self.named else "", self.key)))

    def words(self) -> str:
        """Say it in a plan: "slack SLACK_WEBHOOK on failed, stalled"."""
        return f"{self.kind} {self.to} on {', '.join(self.on)}"

    def to_json(self) -> dict[str, Any]:
        """Return it as monkey.yaml writes it, without what is as it is anyway."""
        said: dict[str, Any] = {self.kind: self.to, "on": list(self.on)}
        said |= {"key": self.key} if self.key else {}
        return said | ({"after": self.after} if self.after != STALLED else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Channel:
        """Read what `to_json` wrote."""
        (kind,) = [kind for kind in KINDS if kind in data]
        on = data.get("on", EVENTS)
        on = (on,) if isinstance(on, str) else tuple(event for event in EVENTS if event in on)
        return cls(kind, data[kind], on, data.get("key", ""), duration(data.get("after", STALLED)))


def read(raw: Any) -> tuple[Channel, ...]:
    """Return what a `notify:` without mistakes says."""
    return tuple(Channel.from_json(one) for one in ([raw] if isinstance(raw, dict) else raw or ()))


def mistakes(raw: Any) -> list[Mistake]:
    """Return what is wrong with the whole of `notify:`."""
    path = ("notify",)
    if isinstance(raw, dict):
        return [mistake.under(path) for mistake in _of_channel(raw)]
    if not isinstance(raw, list):
        return [Mistake(path, f"expected a list of whom to tell, found {describe(raw)}", _EXAMPLE)]
    if len(raw) > MOST:
        return [Mistake(path, f"expected at most {MOST} of whom to tell, found {len(raw)}", "one channel tells many")]
    found, seen = [], list[Channel]()
    for at, one in enumerate(raw):
        wrong = list(_of_channel(one)) if isinstance(one, dict) else []
        if not isinstance(one, dict):
            wrong = [Mistake((), f"expected whom to tell, found {describe(one)}", _EXAMPLE)]
        elif not wrong:
            channel = Channel.from_json(one)
            if any((channel.kind, channel.to) == (other.kind, other.to) for other in seen):
                wrong = [Mistake((), f"{channel.kind} {channel.to} stands twice", "put what it is told into one: on:")]
            seen.append(channel)
        found += [mistake.under((*path, at)) for mistake in wrong]
    return found


def _of_channel(said: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in said:
        if key not in _KEYS:
            yield Mistake((key,), f"unknown key {key!r} of notify", suggest(key, _KEYS, "keys"), on_key=True)
    kinds = [kind for kind in KINDS if kind in said]
    if len(kinds) != 1:
        yield Mistake((), f"expected a webhook or slack, found {'both' if kinds else 'neither'}", _EXAMPLE)
    for kind in kinds:
        yield from _to(kind, said[kind])
    if "key" in said:
        yield from _key(kinds, said["key"])
    yield from _on(said)


def _to(kind: str, to: Any) -> Iterator[Mistake]:
    if isinstance(to, str) and _SECRET.match(to):
        if is_needed(to):
            yield Mistake((kind,), f"{to!r} is no secret: programs need it to run", "give it another name")
        return
    if kind == "slack":
        # What was found is not shown: whoever knows the URL may post.
        hint = "write slack: SLACK_WEBHOOK, and the URL into ~/.config/monkey/secrets"
        yield Mistake((kind,), "expected the name of a secret: capital letters, digits and _", hint)
        return
    try:
        parts = urlsplit(to) if isinstance(to, str) else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, good = None, False
    if parts is not None and ("@" in parts.netloc or parts.query):
        hint = "write webhook: NOTIFY_URL, and the URL into ~/.config/monkey/secrets"
        yield Mistake((kind,), "expected a URL with nothing secret in it: no user, no password, no query", hint)
    elif not good or re.search(r"\s", str(to)) or not str(to).isprintable():
        hint = "write webhook: https://host/path, or the name of a secret that is such a URL"
        yield Mistake((kind,), f"expected a URL, or the name of a secret, found {describe(to)}", hint)


def _key(kinds: list[str], key: Any) -> Iterator[Mistake]:
    if kinds == ["slack"]:
        yield Mistake(("key",), "slack takes no signature", "remove key", on_key=True)
    elif not (isinstance(key, str) and _SECRET.match(key)):
        hint = "write key: NOTIFY_KEY, and its value into ~/.config/monkey/secrets"
        yield Mistake(("key",), "expected the name of a secret: capital letters, digits and _", hint)


def _on(said: Mapping[str, Any]) -> Iterator[Mistake]:
    on = said.get("on", EVENTS)
    asked = [on] if isinstance(on, str) else on
    if not isinstance(asked, list | tuple) or not asked:
        yield Mistake(("on",), f"expected what to tell of, found {describe(on)}", f"on: [{', '.join(EVENTS)}]")
        return
    for at, event in enumerate(asked):
        if event not in EVENTS:
            hint = suggest(str(event), EVENTS, "events")
            yield Mistake(("on",) if isinstance(on, str) else ("on", at), f"unknown event {event!r}", hint)
    if "after" in said:
        try:
            if duration(said["after"]) < _LEAST_STALLED:
                yield Mistake(("after",), f"expected a minute or more, found {describe(said['after'])}", "after: 10m")
        except Mistakes as error:
            yield from (mistake.under(("after",)) for mistake in error.mistakes)
