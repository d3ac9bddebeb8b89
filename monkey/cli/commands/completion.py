"""`monkey completion`: the script that teaches a shell our verbs, options and names."""

from __future__ import annotations

import click

from monkey.cli.registry import monkey_command

#: Where each shell wants the script.
USE = {
    "bash": 'eval "$(monkey completion bash)"                                  # in ~/.bashrc',
    "zsh": 'eval "$(monkey completion zsh)"                                   # in ~/.zshrc',
    "fish": "monkey completion fish > ~/.config/fish/completions/monkey.fish",
}


@click.command("completion", epilog="\b\n" + "\n".join(USE.values()))
@click.argument("shell", type=click.Choice(list(USE)))
def completion_command(shell: str) -> None:
    """Print the completion script of SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # click knows all three
    complete = kind(monkey_command, {}, "monkey", "_MONKEY_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())
