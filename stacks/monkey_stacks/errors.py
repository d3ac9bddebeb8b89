"""Pulumi's errors, and those of clouds that come through it, in our words: the one place that knows theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from monkey.errors import FleetError, MonkeyError, StoreError

#: What Pulumi or a provider says → what that means, and what to do. The first that is found counts.
KNOWN: Sequence[tuple[re.Pattern[str], str, str]] = [
    (
        re.compile(
            r"incorrect passphrase|passphrase must be set|unable to find either `PULUMI_CONFIG_PASSPHRASE`", re.I
        ),
        "the state of the machines was made with another passphrase",
        "somebody changed it by hand: `pulumi stack change-secrets-provider passphrase` there, and an empty passphrase",
    ),
    (
        re.compile(r"the stack is currently locked by", re.I),
        "Pulumi itself is at work on this state, or was and died: a lock of its own is there",
        "wait for it; if nobody runs pulumi by hand there, remove what is below .pulumi/locks in the state",
    ),
    (
        re.compile(
            r"no (?:resource|language) plugin|could not find (?:plugin|latest version for provider)|"
            r"plugin .{0,80}(?:not found|missing)|"
            r"failed to load (?:resource |language )?plugin|pulumi-(?:resource|language)-\S+.{0,40}not found",
            re.I,
        ),
        "a plugin of Pulumi's is missing, and could not be fetched",
        "install Pulumi from its own archive (https://www.pulumi.com/docs/install/), which brings those for Python; "
        "others are fetched where there is a network",
    ),
    (
        re.compile(
            r"no valid credential sources|unable to locate credentials|NoCredentialProviders|no EC2 IMDS role found|"
            r"could not find default credentials|credentials were not found|failed to refresh cached credentials|"
            r"InvalidClientTokenId|ExpiredToken|UnrecognizedClientException|AuthFailure",
            re.I,
        ),
        "the cloud's credentials are missing, wrong or expired",
        "log in as for the cloud's own tool (`aws sso login`, `gcloud auth application-default login`), and try again",
    ),
    (
        re.compile(
            r"error reading from server: EOF|transport is closing|connection error: desc|code = Unavailable|"
            r"(?:resource )?plugin .{0,80}exited",
            re.I,
        ),
        "a plugin of Pulumi's ended in the middle",
        "apply again: what was done is known; if it ends again, look whether this machine has too little memory",
    ),
    (
        re.compile(r"snapshot integrity failure", re.I),
        "the state of the machines contradicts itself",
        "backups of it are below .pulumi/backups in the state; put one in its place",
    ),
]


def translate(exc: BaseException, said: Sequence[str] = (), trouble: StoreError | None = None) -> MonkeyError:
    """Return the error to raise for one of Pulumi's; `said`: what it told of; `trouble`: why the store failed."""
    if isinstance(exc, MonkeyError):
        return exc
    if trouble is not None:
        return trouble
    return known("\n".join([*said, str(exc)])) or FleetError(
        f"Pulumi failed: {_last(said, str(exc))}", hint="what was done is known; apply goes on from there"
    )


def known(text: str) -> FleetError | None:
    """Return the error to raise for what was told of; None where nobody knows it."""
    for pattern, message, hint in KNOWN:
        found = pattern.search(text)
        if found:
            return FleetError(f"{message}: {_line(text, found.start())}", hint=hint)
    return None


def _line(text: str, at: int) -> str:
    """Return the line around a place."""
    begin = text.rfind("\n", 0, at) + 1
    return _bare(text[begin:].partition("\n")[0])


def _last(said: Sequence[str], text: str) -> str:
    if said:
        return "\n".join(dict.fromkeys(said))
    errors = [_bare(line) for line in text.splitlines() if "error:" in line]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(dict.fromkeys(errors)) or (lines[-1] if lines else "it said nothing")


def _bare(line: str) -> str:
    return re.sub(r"^\s*(?:stderr:|stdout:|error:|\s)+", "", line).strip()
