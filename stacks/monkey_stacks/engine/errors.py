"""Pulumi's errors, and those of clouds that come through it, in our words: the one place that knows theirs."""

from __future__ import annotations

from collections.abc import Sequence

from monkey.errors import FleetError, MonkeyError, StoreError
from monkey_stacks.engine import plugins
from monkey_stacks.error_tables import Word, find_translation, make_row, strip_error_words

#: The state, where its key is not at hand.
_STATE_NAME = "the state of the machines"
#: What Pulumi or a provider says → what that means, and what to do. The first that is found counts.
_PULUMI_ERRORS: Sequence[Word] = [
    make_row(
        r"incorrect passphrase|passphrase must be set|unable to find either `PULUMI_CONFIG_PASSPHRASE`",
        "the state of the machines was made with another passphrase",
        "somebody changed it by hand: `pulumi stack change-secrets-provider passphrase` there, and an empty passphrase",
    ),
    make_row(
        r"no (?:resource|language) plugin|could not find (?:plugin|latest version for provider)|"
        r"plugin .{0,80}(?:not found|missing)|"
        r"failed to load (?:resource |language )?plugin|pulumi-(?:resource|language)-\S+.{0,40}not found",
        "a plugin of Pulumi's is missing",
        "install Pulumi from its own archive (https://www.pulumi.com/docs/install/), which brings those for Python",
    ),
    make_row(
        r"no valid credential sources|unable to locate credentials|NoCredentialProviders|no EC2 IMDS role found|"
        r"could not find default credentials|credentials were not found|failed to refresh cached credentials|"
        r"InvalidClientTokenId|ExpiredToken|UnrecognizedClientException|AuthFailure",
        "the cloud's credentials are missing, wrong or expired",
        "log in as for the cloud's own tool (`aws sso login`, `gcloud auth application-default login`), and try again",
    ),
    make_row(
        r"error reading from server: EOF|transport is closing|connection error: desc|code = Unavailable|"
        r"(?:resource )?plugin .{0,80}exited",
        "a plugin of Pulumi's ended in the middle",
        "apply again: what was done is known; if it ends again, look whether this machine has too little memory",
    ),
    make_row(
        r"snapshot integrity failure",
        "the state of the machines contradicts itself",
        "backups of it are below .pulumi/backups in the state; put one in its place",
    ),
]


def translate_engine_error(
    exc: BaseException, said: Sequence[str] = (), trouble: StoreError | None = None, key: str = _STATE_NAME
) -> MonkeyError:
    """Return the error to raise for one of Pulumi's.

    `said`: its messages; `trouble`: why the store failed; `key`: where the state is.
    """
    if isinstance(exc, MonkeyError):
        return exc
    if trouble is not None:
        return trouble
    return find_known_error("\n".join([*said, str(exc)]), key) or FleetError(
        f"Pulumi failed: {_last(said, str(exc))}", hint="what was done is known; apply goes on from there"
    )


def make_foreign_lock_error(locks: int) -> FleetError:
    """Return the error for locks of Pulumi's own in the state: ours never write one."""
    held = f"locked by {locks} lock{'s' * (locks != 1)} of its own"
    return FleetError(
        f"Pulumi itself is at work on this state, or was and died: {held}",
        hint="wait for it; if nobody runs pulumi by hand there, remove what is below .pulumi/locks in the state",
    )


def find_known_error(text: str, key: str = _STATE_NAME) -> FleetError | None:
    """Return the error to raise for known messages; None for unknown ones. `key`: where the state is."""
    return plugins.explain_missing_plugin(text, key) or find_translation(text, _PULUMI_ERRORS)


def _last(said: Sequence[str], text: str) -> str:
    if said:
        return "\n".join(dict.fromkeys(said))
    errors = [strip_error_words(line) for line in text.splitlines() if "error:" in line]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join(dict.fromkeys(errors)) or (lines[-1] if lines else "it said nothing")
