"""`monkey schema`: what a spec may say, for editors."""

from __future__ import annotations

import click

from monkey.cli.terminal.text import dump_json
from monkey.spec.sweep.json_schema import build_spec_schema


@click.command("schema")
def schema_command() -> None:
    """Print the JSON schema of specs.

    Editors with the YAML language server use it for a spec whose first line is
    `# yaml-language-server: $schema=schema.json`.
    """
    click.echo(dump_json(build_spec_schema(), indent=2))
