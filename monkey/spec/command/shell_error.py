"""The errors of scripts and lines: what was found, what to write, and where."""

from __future__ import annotations

from monkey.spec.command.injection_risks import INJECTION_RISKS


class ShellError(ValueError):
    """A script that is not sh, or that the reader does not follow; `offset` counts characters."""

    def __init__(self, message: str, hint: str, offset: int) -> None:
        """Keep what was found, what to write, and where."""
        super().__init__(message)
        self.message, self.hint, self.offset = message, hint, offset


class InjectionError(ShellError):
    """A place where a value would become code; `kind` is a key of INJECTION_RISKS."""

    def __init__(self, kind: str, offset: int) -> None:
        """Take the words for that kind."""
        super().__init__(*INJECTION_RISKS[kind], offset)


def make_escape_error(at: int) -> ShellError:
    """Return the error for a backslash before a parameter, whose meaning is unclear."""
    return ShellError("a backslash before a parameter", "remove it; for a literal brace write {{", at)


def make_unclosed_error(quote: str, at: int) -> ShellError:
    """Return the error for an opening quote without a closing one."""
    return ShellError(f"the quote {quote} is never closed", "add the other one", at)
