"""`monkey history`: what was done to a sweep, entry by entry."""

from __future__ import annotations

import click

from monkey.apply.history.sweep_history import HistoryLine, list_history
from monkey.cli.session import complete_sweep_names, json_option, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, flatten_text, lay_out_table


@click.command("history")
@click.argument("sweep", shell_complete=complete_sweep_names)
@json_option
def history_command(sweep: str, as_json: bool) -> None:
    """Show what was done to SWEEP: its revisions with their commits, and the orders of people.

    + new jobs, ~ stale ones, - removed ones. `monkey rollback SWEEP N` brings back what revision N wanted.
    """
    lines = run_in_world(lambda world: list_history(world, sweep))
    if as_json:
        click.echo(dump_json([line.to_json() for line in lines], indent=2))
        return
    headers = ["ENTRY", "WHAT", "WHEN", "WHO", "COMMIT", "BRANCH", "PULL", "+", "~", "-", "WHY"]
    click.echo("\n".join(lay_out_table(headers, map(_row, lines), detect_terminal())))


def _row(line: HistoryLine) -> list[object]:
    git, jobs = line.git or {}, line.jobs
    commit = str(git.get("commit", ""))[:10] + ("+" if git.get("dirty") else "")
    pull = f"#{git['pull']}" if git.get("pull") else ""
    what = f"rollback to {line.restores}" if line.restores else line.kind
    counts = [jobs.new, jobs.stale, jobs.removed] if jobs else ["", "", ""]
    texts = [what, line.at, line.author, commit, git.get("branch") or "", pull]
    return [line.number, *(flatten_text(str(text)) for text in texts), *counts, flatten_text(line.text)]
