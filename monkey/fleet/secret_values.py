"""Secrets of this machine: their values, from the environment or a file of the user's. Specs hold names alone."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from monkey.config_directory import locate_config_directory
from monkey.errors import FleetError

#: Names another place for the file.
VARIABLE = "MONKEY_SECRETS_FILE"
#: Names variables of an agent, with commas, that no job inherits unless its spec lists them.
WITHHELD = "MONKEY_WITHHELD"
#: Bytes that the file may have.
_MOST = 1 << 20
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=[ \t]*")
_QUOTED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def quote_secret_line(name: str, value: str) -> str:
    """Return a line of the file of secrets, as `SecretValues` reads it."""
    quoted = re.sub(r'[\\"\n\r\t]', lambda found: _QUOTED[found[0]], value)
    return f'{name}="{quoted}"'


class SecretValues:
    """Where this machine's secrets are found."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """Look in `environ` (ours by default) first, then in the file."""
        self._environ = os.environ if environ is None else environ

    @property
    def file(self) -> Path:
        """Where the file is, or would be."""
        named = self._environ.get(VARIABLE)
        if named:
            return Path(named).expanduser()
        return locate_config_directory(self._environ) / "secrets"

    def get(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values; raises FleetError that tells which are not here, or what is wrong with the file.

        An empty value counts as none: that is what a variable of a CI system is that is unset.
        """
        found = {name: self._environ.get(name, "") for name in names}
        if not all(found.values()):
            kept = self._read()
            found = {name: value or kept.get(name, "") for name, value in found.items()}
        missing = [name for name, value in found.items() if not value]
        if missing:
            many = "secrets are" if len(missing) > 1 else "secret is"
            raise FleetError(
                f"the {many} not on this machine: {', '.join(missing)}",
                hint=f"set the variable where monkey is started, or write {missing[0]}=… into {self.file} (mode 0600)",
            )
        return found

    def collect(self, needed: Iterable[str], others: Iterable[str]) -> tuple[dict[str, str], list[str]]:
        """Return the values of both, and which of `others` are not here: machines keep what they have of those.

        Raises FleetError where a needed one is not here.
        """
        values, kept = self.get(sorted(needed)), list[str]()
        for name in sorted(others):
            try:
                values |= self.get([name])
            except FleetError:
                kept.append(name)
        return values, kept

    def _read(self) -> dict[str, str]:
        path = self.file
        try:
            # A pipe would be waited for.
            with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
                _check(path, os.fstat(file.fileno()))
                return parse_secrets(file.read(_MOST).decode(), str(path))
        except FileNotFoundError:
            if self._environ.get(VARIABLE):
                raise FleetError(f"{VARIABLE} names a file that is not there: {path}") from None
            return {}
        except UnicodeDecodeError as exc:
            raise FleetError(f"the secrets in {path} are not UTF-8") from exc
        except OSError as exc:
            raise FleetError(f"the secrets in {path} cannot be read: {exc.strerror}") from exc


def _check(path: Path, status: os.stat_result) -> None:
    """Refuse a file that others may read, or could have written."""
    if not stat.S_ISREG(status.st_mode):
        raise FleetError(f"expected a file with secrets, found something else: {path}")
    if status.st_uid not in (os.geteuid(), 0):
        raise FleetError(f"the secrets in {path} belong to another user")
    if status.st_mode & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        raise FleetError(f"others may read the secrets in {path} (its mode is {mode})", hint=f"chmod 600 {path}")


def parse_secrets(text: str, source: str) -> dict[str, str]:
    """Read lines NAME=value: plain, in 'single quotes' (as it is) or "double" ones (with \\n); both may span lines.

    Raises FleetError with file and line, and nothing of what stands there.
    """
    values: dict[str, str] = {}
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end].strip()
        if line and not line.startswith("#"):
            at += len(text[at:end]) - len(text[at:end].lstrip())
            match = _LINE.match(text, at)
            if match is None:
                raise _wrong(text, at, source, "expected NAME=value")
            values[match[1]], end = _value(text, match.end(), source)
            if "\0" in values[match[1]]:
                raise _wrong(text, at, source, "a variable cannot hold a NUL")
        at = end
    return values


def _value(text: str, at: int, source: str) -> tuple[str, int]:
    """Return the value that begins there, and where the next line does."""
    quote = text[at : at + 1]
    if quote not in ("'", '"'):
        end = text.find("\n", at) + 1 or len(text)
        return re.sub(r"\s+#.*", "", text[at:end]).strip(), end
    close = re.compile(r"'" if quote == "'" else r'(?<!\\)(?:\\\\)*"').search(text, at + 1)
    if close is None:
        raise _wrong(text, at, source, f"the {quote} that begins here has no end")
    end = text.find("\n", close.end()) + 1 or len(text)
    rest = text[close.end() : end].strip()
    if rest and not rest.startswith("#"):
        raise _wrong(text, close.end(), source, "expected the end of the line after the closing quote")
    inside = text[at + 1 : close.end() - 1]
    return inside if quote == "'" else re.sub(r"\\(.)", _unescape, inside, flags=re.DOTALL), end


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[0])


def _wrong(text: str, at: int, source: str, what: str) -> FleetError:
    return FleetError(f"{source}:{text.count(chr(10), 0, at) + 1}: {what}")
