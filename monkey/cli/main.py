"""The `monkey` command: it runs a verb, and turns every error into words and an exit code.

This module imports nothing heavy: it answers `monkey --help` and shell completion before click is needed.
"""

from __future__ import annotations

import gc
import os
import sys

from monkey.cli.exit_codes import BROKEN_PIPE, INTERRUPTED
from monkey.cli.help import compose_help
from monkey.process_exit import drop_output, exit_now, open_closed_streams
from monkey.version import __version__

TYPE_CHECKING = False  # not from typing, nor errors with its dataclasses: each costs the help some milliseconds

if TYPE_CHECKING:
    from typing import NoReturn

    from monkey.errors import MonkeyError


#: Variables that CI's runners set. What these read is text, and here and there a command.
_RUNNERS = frozenset(("CI", "GITHUB_ACTIONS", "GITEA_ACTIONS", "FORGEJO_ACTIONS", "GITLAB_CI"))
#: The hint for a bug: what its report needs.
REPORT = "this is a bug in monkey; please report it, with what this prints: MONKEY_DEBUG=1 {command}"


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run `monkey` with these arguments (default: the process's) and exit."""
    given = sys.argv[1:] if arguments is None else arguments
    open_closed_streams()
    # Most verbs end within a second, in which collecting costs a fifth and finds nothing; whoever watches turns it on.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a value that this terminal's encoding lacks must not end in a traceback
            stream.reconfigure(errors="backslashreplace")
    if not _RUNNERS.isdisjoint(os.environ):
        from monkey.cli.terminal.runner_output import make_output_inert

        make_output_inert()
    code = run_guarded(given)
    try:
        sys.stdout.flush()
    except OSError as exc:
        code = _output_failed(exc)
    exit_now(code)


def run_guarded(arguments: list[str]) -> int:
    """Run `monkey` with these arguments and return the exit code; every failure becomes words on stderr."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        return 0 if _answered(arguments) else _called(arguments)
    except KeyboardInterrupt as exc:
        print("\n".join(map(str, exc.args)) or "interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError as exc:
        return _output_failed(exc)
    except MemoryError:
        print("error: out of memory", file=sys.stderr)
        return 1
    except OSError as exc:
        return _system_said_no(exc)
    except Exception as exc:
        return _bug(exc, arguments)


def _answered(arguments: list[str]) -> bool:
    """Answer `--help` and `--version`, which need only this file; return whether they were asked."""
    if "_MONKEY_COMPLETE" in os.environ:
        return False
    if arguments in ([], ["-h"], ["--help"]):
        sys.stdout.write(compose_help())
        return True
    if arguments == ["--version"]:
        print(f"monkey {__version__}")
        return True
    return False


def _called(arguments: list[str]) -> int:
    from monkey.errors import MonkeyError

    try:
        if paths := _plain_paths(arguments):
            from monkey.cli.push_report import format_push, push_paths

            print(format_push(push_paths(paths)))
            return 0
        from monkey.cli.registry import call_verb

        return call_verb(arguments)
    except MonkeyError as exc:
        _explain(exc)
        return exc.exit_code


def _plain_paths(arguments: list[str]) -> list[str]:
    """Return the paths of `push --path PATH …` without other arguments: it needs no click, whose import takes time."""
    options, paths = arguments[1::2], arguments[2::2]
    plain = arguments[:1] == ["push"] and len(options) == len(paths) and {"-p", "--path"}.issuperset(options)
    return paths if plain else []


def _explain(exc: MonkeyError) -> None:
    from monkey.cli.terminal.text import make_printable

    print(f"error: {make_printable(exc.message)}", file=sys.stderr)
    if exc.hint:
        print(f"hint: {make_printable(exc.hint)}", file=sys.stderr)
    if os.environ.get("MONKEY_DEBUG"):
        _traceback(exc)


def _system_said_no(exc: OSError) -> int:
    """Report what the operating system refused, and return the exit code: a full disk is no bug of ours."""
    from monkey.cli.terminal.text import make_printable
    from monkey.store.keys import shorten_key

    where = f": {make_printable(shorten_key(str(exc.filename)))}" if exc.filename is not None else ""
    print(f"error: {exc.strerror or exc}{where}", file=sys.stderr)
    if os.environ.get("MONKEY_DEBUG"):
        _traceback(exc)
    return 1


def _output_failed(exc: OSError) -> int:
    """Return the exit code for output that cannot be written; report that, unless the reader of a pipe is gone."""
    drop_output(1)
    if isinstance(exc, BrokenPipeError):
        return BROKEN_PIPE
    print(f"error: cannot write the output: {exc.strerror or exc}", file=sys.stderr)
    return 1


def _bug(exc: Exception, arguments: list[str]) -> int:
    if os.environ.get("MONKEY_DEBUG"):
        _traceback(exc)
    import shlex
    import traceback

    frame = traceback.extract_tb(exc.__traceback__)[-1]
    print(f"error: {type(exc).__name__}: {exc} ({frame.filename}:{frame.lineno})", file=sys.stderr)
    print("hint: " + REPORT.format(command=shlex.join(["monkey", *arguments])), file=sys.stderr)
    return 1


def _traceback(exc: BaseException) -> None:
    import traceback

    traceback.print_exception(exc)


if __name__ == "__main__":
    main()
