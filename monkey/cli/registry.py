"""The verbs as click sees them: a group that imports a verb's module only when it is called."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import click

from monkey.cli.help import ELSEWHERE, VERBS, compose_help
from monkey.errors import MonkeyError
from monkey.version import __version__

#: How alike a wrong verb and a right one must be for a guess.
SIMILAR = 0.7


class VerbRegistry(click.Group):
    """`monkey VERB`: one module a verb, each with a `VERB_command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all verbs, in the order of the help."""
        return [verb for verbs in VERBS.values() for verb in verbs]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the verb's module."""
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"monkey.cli.commands.{name}"), f"{name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; the error of an unknown one names the nearest."""
        if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            near = ELSEWHERE.get(args[0]) or self._find_nearest(args[0], ctx)
            hint = f"did you mean `monkey {near}`?" if near else "`monkey --help` lists the verbs"
            raise MonkeyError(f"there is no verb {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def _find_nearest(self, word: str, ctx: click.Context) -> str | None:
        from difflib import get_close_matches

        return next(iter(get_close_matches(word, self.list_commands(ctx), n=1, cutoff=SIMILAR)), None)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the same help that main writes without click."""
        formatter.write(compose_help())


def _go_to(ctx: click.Context, parameter: click.Parameter, directory: str | None) -> None:
    if directory is None:
        return
    try:
        os.chdir(directory)
    except OSError as exc:
        raise MonkeyError(f"cannot work in {directory!r}: {exc.strerror}", hint="-C wants a directory") from exc


@click.group(cls=VerbRegistry, name="monkey", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "directory", metavar="DIR", expose_value=False, callback=_go_to, help="Run as if started in DIR.")
@click.version_option(__version__, message="monkey %(version)s")
def monkey_command() -> None:
    """Commit a sweep; the machines follow."""


def call_verb(arguments: list[str]) -> int:
    """Run the verb that the arguments name and return its exit code.

    Raises MonkeyError, also for arguments that are wrong: exit code 2 belongs to `plan --detailed-exitcode` and `diff`.
    """
    try:
        code: Any = monkey_command.main(arguments, prog_name="monkey", standalone_mode=False)
    except click.Abort as exc:
        why = exc.__cause__
        raise KeyboardInterrupt(*(why.args if isinstance(why, KeyboardInterrupt) else ())) from exc
    except click.exceptions.NoArgsIsHelpError as exc:
        assert exc.ctx is not None and isinstance(exc.ctx.command, click.Group)
        words = ", ".join(exc.ctx.command.list_commands(exc.ctx))
        hint = f"write one of: {words}; `{exc.ctx.command_path} --help` tells what they do"
        raise MonkeyError(f"`{exc.ctx.command_path}` needs a subcommand", hint=hint) from exc
    except click.UsageError as exc:
        usage = f"`{exc.ctx.command_path} --help` tells how it is used" if exc.ctx else None
        raise MonkeyError(exc.format_message().rstrip("."), hint=usage) from exc
    except click.ClickException as exc:
        raise MonkeyError(exc.format_message()) from exc
    return code if isinstance(code, int) else 0
