"""`notify:` in monkey.yaml: who gets a message when a sweep ends or stalls. Secrets are named, never held.

A channel `forge` gets no message: results are posted to the pull request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.yaml.environment_names import is_system_variable
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, suggest_word
from monkey.spec.yaml.units import parse_duration

#: What can be told, in the order in which it is documented.
NOTIFY_EVENTS = ("finished", "failed", "stalled")
CHANNEL_KINDS = ("webhook", "slack", "forge")
#: What names a secret and nothing else: with the hint of what that secret is.
_SECRET_KINDS = {
    "slack": "write slack: SLACK_WEBHOOK, and the URL into ~/.config/monkey/secrets",
    "forge": "write forge: FORGE_TOKEN, and the token into ~/.config/monkey/secrets",
}
_KEYS = (*CHANNEL_KINDS, "on", "key", "after")
#: Seconds in which nothing of a sweep ran, though it has jobs left and agents live.
_DEFAULT_STALLED_SECONDS = 600.0
_MIN_STALLED_SECONDS = 60.0
#: Those of one project.
_MAX_CHANNELS = 20
_SECRET = re.compile(r"[A-Z_][A-Z0-9_]{0,63}\Z")
_EXAMPLE = "write - {slack: SLACK_WEBHOOK, on: [failed]}"


@dataclass(frozen=True)
class NotifyChannel:
    """One way to tell people."""

    #: One of CHANNEL_KINDS.
    kind: str
    #: A URL, or the name of the secret that is one; of a forge, the name of the secret that is a token.
    to: str
    on: tuple[str, ...] = NOTIFY_EVENTS
    #: Name of the secret that webhooks are signed with; "" for none.
    key: str = ""
    #: Seconds without anything running after which a sweep has stalled.
    after: float = _DEFAULT_STALLED_SECONDS
    #: Of a channel `forge`: where all of it is, as found out where the sweep was applied. Machines have no monkey.yaml.
    forge: ForgeSettings | None = None

    @property
    def named(self) -> bool:
        """Is `to` the name of a secret?"""
        return _SECRET.match(self.to) is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the secrets that a sender needs."""
        return tuple(filter(None, (self.to if self.named else "", self.key)))

    def words(self) -> str:
        """Say it in a plan: "slack SLACK_WEBHOOK on failed, stalled"."""
        at = f" for {self.forge.repository} at {self.forge.api}" if self.forge else ""
        return f"{self.kind} {self.to}{at} on {', '.join(self.on)}"

    def to_json(self) -> dict[str, Any]:
        """Return it as monkey.yaml writes it, without what is as it is anyway."""
        said: dict[str, Any] = {self.kind: self.to, "on": list(self.on)}
        said |= {"key": self.key} if self.key else {}
        said |= {"at": asdict(self.forge)} if self.forge else {}
        return said | ({"after": self.after} if self.after != _DEFAULT_STALLED_SECONDS else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> NotifyChannel:
        """Read what `to_json` wrote."""
        (kind,) = [kind for kind in CHANNEL_KINDS if kind in data]
        on = data.get("on", NOTIFY_EVENTS)
        on = (on,) if isinstance(on, str) else tuple(event for event in NOTIFY_EVENTS if event in on)
        after = parse_duration(data.get("after", _DEFAULT_STALLED_SECONDS))
        forge = ForgeSettings(**data["at"]) if "at" in data else None
        return cls(kind, data[kind], on, data.get("key", ""), after, forge)


def parse_notify_channels(raw: Any) -> tuple[NotifyChannel, ...]:
    """Return what a `notify:` without mistakes says."""
    return tuple(NotifyChannel.from_json(one) for one in ([raw] if isinstance(raw, dict) else raw or ()))


def find_notify_mistakes(raw: Any) -> list[Mistake]:
    """Return what is wrong with the whole of `notify:`."""
    path = ("notify",)
    if isinstance(raw, dict):
        return [mistake.under(path) for mistake in _find_channel_mistakes(raw)]
    if not isinstance(raw, list):
        return [Mistake(path, f"expected a list of whom to tell, found {describe_value(raw)}", _EXAMPLE)]
    if len(raw) > _MAX_CHANNELS:
        return [
            Mistake(
                path, f"expected at most {_MAX_CHANNELS} of whom to tell, found {len(raw)}", "one channel tells many"
            )
        ]
    found, seen = [], list[NotifyChannel]()
    for at, one in enumerate(raw):
        wrong = list(_find_channel_mistakes(one)) if isinstance(one, dict) else []
        if not isinstance(one, dict):
            wrong = [Mistake((), f"expected whom to tell, found {describe_value(one)}", _EXAMPLE)]
        elif not wrong:
            channel = NotifyChannel.from_json(one)
            if any(_is_same(channel, other) for other in seen):
                wrong = [Mistake((), f"{channel.kind} {channel.to} stands twice", "put what it is told into one: on:")]
            seen.append(channel)
        found += [mistake.under((*path, at)) for mistake in wrong]
    return found


def _is_same(one: NotifyChannel, other: NotifyChannel) -> bool:
    """Do both tell the same? A project has one forge, whatever token it is."""
    return one.kind == other.kind and (one.kind == "forge" or one.to == other.to)


def _find_channel_mistakes(said: Mapping[str, Any]) -> Iterator[Mistake]:
    for key in said:
        if key not in _KEYS:
            yield Mistake((key,), f"unknown key {key!r} of notify", suggest_word(key, _KEYS, "keys"), on_key=True)
    kinds = [kind for kind in CHANNEL_KINDS if kind in said]
    if len(kinds) != 1:
        yield Mistake((), f"expected a webhook, slack or forge, found {'several' if kinds else 'none'}", _EXAMPLE)
    for kind in kinds:
        yield from _find_target_mistakes(kind, said[kind])
    if "key" in said:
        yield from _find_key_mistakes(kinds, said["key"])
    yield from _find_event_mistakes(said)


def _find_target_mistakes(kind: str, to: Any) -> Iterator[Mistake]:
    if isinstance(to, str) and _SECRET.match(to):
        if is_system_variable(to):
            yield Mistake((kind,), f"{to!r} is no secret: programs need it to run", "give it another name")
        return
    if kind in _SECRET_KINDS:
        # What was found is not shown: whoever knows it may post.
        what = "expected the name of a secret: capital letters, digits and _"
        yield Mistake((kind,), what, _SECRET_KINDS[kind])
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
        yield Mistake((kind,), f"expected a URL, or the name of a secret, found {describe_value(to)}", hint)


def _find_key_mistakes(kinds: list[str], key: Any) -> Iterator[Mistake]:
    if kinds and kinds[0] in _SECRET_KINDS:
        yield Mistake(("key",), f"{kinds[0]} takes no signature", "remove key", on_key=True)
    elif not (isinstance(key, str) and _SECRET.match(key)):
        hint = "write key: NOTIFY_KEY, and its value into ~/.config/monkey/secrets"
        yield Mistake(("key",), "expected the name of a secret: capital letters, digits and _", hint)


def _find_event_mistakes(said: Mapping[str, Any]) -> Iterator[Mistake]:
    on = said.get("on", NOTIFY_EVENTS)
    asked = [on] if isinstance(on, str) else on
    if not isinstance(asked, list | tuple) or not asked:
        yield Mistake(
            ("on",), f"expected what to tell of, found {describe_value(on)}", f"on: [{', '.join(NOTIFY_EVENTS)}]"
        )
        return
    for at, event in enumerate(asked):
        if event not in NOTIFY_EVENTS:
            hint = suggest_word(str(event), NOTIFY_EVENTS, "events")
            yield Mistake(("on",) if isinstance(on, str) else ("on", at), f"unknown event {event!r}", hint)
    if "after" in said:
        try:
            if parse_duration(said["after"]) < _MIN_STALLED_SECONDS:
                yield Mistake(
                    ("after",), f"expected a minute or more, found {describe_value(said['after'])}", "after: 10m"
                )
        except MistakesError as error:
            yield from (mistake.under(("after",)) for mistake in error.mistakes)
