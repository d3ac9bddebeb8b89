"""Whose keys are trusted: lines in OpenSSH's format of allowed signers, `NAME [options] ssh-ed25519 AAAA… comment`.

`ssh-keygen -Y verify -f` reads the same file. A line that is not understood is an error with its place. Otherwise a key
that was to be trusted until a certain day could be trusted for ever.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from monkey.errors import SigningError
from monkey.signing.keys.owned_file import read_owned_file
from monkey.signing.keys.public_key import KEY_TYPE, BadPublicKey, PublicKey, parse_public_key
from monkey.signing.signed_entry import NAMESPACE

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,99}")
#: The first word, options where there are any, and the key: quoted values of options may have spaces.
_LINE = re.compile(r'(?P<name>\S+)[ \t]+(?:(?P<options>(?:"[^"]*"|[^\s"])+)[ \t]+)??(?P<key>(?:ssh|ecdsa|sk)-.*)')
_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?(?:,|\Z)')
_TIME = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:([0-9]{2})([0-9]{2})([0-9]{2})?)?Z")


class AllowedSigner(NamedTuple):
    """A trusted key: whose it is, and from when until when it counts (seconds since the epoch; None: no bound)."""

    name: str
    key: PublicKey
    after: float | None = None
    before: float | None = None

    def is_valid(self, now: float) -> bool:
        """Return whether the key counts at that time."""
        return (self.after is None or self.after <= now) and (self.before is None or now <= self.before)

    @property
    def line(self) -> str:
        """The line of the file. It names the purpose, so that ssh-keygen takes the key for nothing else."""
        options = [f'namespaces="{NAMESPACE}"']
        for word, moment in (("valid-after", self.after), ("valid-before", self.before)):
            options += [] if moment is None else [f'{word}="{format_key_time(moment)}"']
        return f"{self.name} {','.join(options)} {self.key.line}"


def is_signer_name(name: str) -> bool:
    """Return whether a signer may have this name: it has no spaces, and none of OpenSSH's patterns."""
    return _NAME.fullmatch(name) is not None


def format_key_time(moment: float) -> str:
    """Return a time as OpenSSH writes it, in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y%m%d%H%M%SZ")


def parse_allowed_signers(text: str, source: str) -> list[AllowedSigner]:
    """Return the signers, in the order of the lines. Raises SigningError with file and line."""
    found: dict[PublicKey, int] = {}
    signers = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        try:
            signer = _parse_line(line.strip())
            if signer.key in found:
                raise ValueError(f"line {found[signer.key]} has this key already")
        except ValueError as exc:
            raise SigningError(
                f"{source}:{number}: {exc}", hint=f"a line is: NAME [options] {KEY_TYPE} AAAA…; or remove this line"
            ) from exc
        found[signer.key] = number
        signers.append(signer)
    return signers


def read_allowed_signers(path: Path) -> list[AllowedSigner]:
    """Return the signers in a file that only this user can change. Raises SigningError, FileNotFoundError."""
    data = read_owned_file(path, "the list of signers")
    try:
        return parse_allowed_signers(data.decode(), str(path))
    except UnicodeDecodeError as exc:
        raise SigningError(f"the list of signers in {path} is not UTF-8") from exc


def _parse_line(line: str) -> AllowedSigner:
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"expected a name and a key, found {line[:60]!r}")
    if not is_signer_name(match["name"]):
        raise ValueError(f"expected one name without patterns, found {match['name'][:60]!r}")
    options = _parse_options(match["options"] or "")
    try:
        key = parse_public_key(match["key"])
    except BadPublicKey as exc:
        raise ValueError(str(exc)) from exc
    namespaces = options.pop("namespaces", None)
    if namespaces is not None and NAMESPACE not in namespaces.split(","):
        raise ValueError(f'expected namespaces="{NAMESPACE}", found {namespaces[:40]!r}')
    after, before = options.pop("valid-after", None), options.pop("valid-before", None)
    if options:
        raise ValueError(f"the option {next(iter(options))!r} is not supported")
    return AllowedSigner(match["name"], key, _parse_time(after), _parse_time(before))


def _parse_options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None or match[1].lower() in found:
            raise ValueError(f'expected options NAME="VALUE" with commas, each once, found {text[at : at + 40]!r}')
        found[match[1].lower()], at = match[2] or "", match.end()
    if text.endswith(","):
        raise ValueError("an option is missing after the last comma")
    return found


def _parse_time(text: str | None) -> float | None:
    """Read YYYYMMDD[HHMM[SS]]Z. Without Z, OpenSSH takes each machine's own zone: a key would end at several times."""
    if text is None:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a time in UTC, such as 20270131Z or 202701312359Z, found {text[:40]!r}")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
