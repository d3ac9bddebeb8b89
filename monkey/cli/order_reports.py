"""What pause, resume, cancel and retry say when they are done."""

from __future__ import annotations

import click

from monkey.apply.orders import OrderOutcome
from monkey.apply.world.sweep_status import judge_standing
from monkey.cli.render.apply_outcome import summarize_states
from monkey.cli.terminal.text import flatten_text, format_plural
from monkey.plan.advice import suggest_next_step


def print_order(what: str, done: str) -> None:
    """Tell a thing that was done while an order is carried out."""
    click.echo(f"{what}: {done}")


def report_order(done: OrderOutcome, verb: str, did: str, then: str) -> None:
    """Print what an order came to, and what may be done next; where there was nothing to order, how the sweep stands.

    `did`: what the sweep is or does now; `then`: a sentence or two, without the last full stop.
    """
    name = flatten_text(done.view.state.name)
    if not done.changed:
        click.echo(f"{name}: {_stands(done)}; nothing to {verb}. {_helps(done)}.")
        return
    if not done.jobs:
        click.echo(f"{name}: {did}, but nothing is left to run: {_stands(done)}. {_helps(done)}.")
        return
    running = f", {done.running:,} of them running" if done.running else ""
    besides = f"; {done.besides:,} more go on" if done.besides else ""
    click.echo(f"{name}: {did} ({format_plural(done.jobs, 'job')}{running}{besides}). {then}.")


def _stands(done: OrderOutcome) -> str:
    return summarize_states(done.view)


def _helps(done: OrderOutcome) -> str:
    """Return what helps the sweep as it is now; an order that leaves it with nothing to run has opened it again."""
    from dataclasses import replace

    at = judge_standing(done.view)
    return flatten_text(suggest_next_step(replace(at, paused=False, cancelled=False) if done.changed else at))
