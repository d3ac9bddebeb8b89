"""A watched sweep: as a picture that is redrawn on a terminal, and as a plain line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from monkey.apply.watch.sweep_progress import SweepProgress
from monkey.cli.render.machine_usage import format_telemetry
from monkey.cli.terminal.text import Terminal, draw_bar, flatten_text, format_cell, format_elapsed, format_plural
from monkey.plan.text.short_texts import cut_text, measure_width
from monkey.protocol.status.store_snapshot import AgentView, JobState, StoreSnapshot

#: The colour of each state, in the order in which bars and counts tell them.
STATES = {
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.RUNNING: "cyan",
    JobState.FROZEN: "yellow",
    JobState.QUEUED: "dim",
    JobState.PAUSED: "yellow",
    JobState.CANCELLED: "yellow",
    JobState.STOPPED: "cyan",
    JobState.EXPIRED: "yellow",
}
#: States of jobs that are not done: a thin line of a bar.
_BEGUN = (JobState.RUNNING, JobState.FROZEN, JobState.PAUSED)
#: Columns that a bar takes where there is room, and at the least.
BAR, SHORT_BAR = 36, 10


class BestJob(NamedTuple):
    """The best job so far: by which metric, its value, and what tells the job from others."""

    metric: str
    value: float
    job: str
    parameters: str


def format_state_counts(counts: Mapping[JobState, int], to: Terminal, *, leave_out: Sequence[JobState] = ()) -> str:
    """Return "12 succeeded, 2 running, 10 queued"; states without jobs are left out, as are those of `leave_out`."""
    told = [
        to.paint(f"{counts[state]:,} {state}", colour if colour != "dim" else "")
        for state, colour in STATES.items()
        if counts.get(state) and state not in leave_out
    ]
    return ", ".join(told) or ("" if leave_out else "no jobs")


def draw_progress(
    snapshot: StoreSnapshot | None,
    progress: Sequence[SweepProgress],
    best: Mapping[str, BestJob],
    trouble: str,
    to: Terminal,
) -> list[str]:
    """Return the picture of one look: two lines a sweep, one for the agents, and what is wrong."""
    lines: list[str] = []
    widest = max((measure_width(flatten_text(one.name)) for one in progress), default=0)
    for one in progress:
        lines += _sweep(one, best.get(one.name), min(widest, 24), to)
    if trouble:
        lines.append(to.paint(f"{flatten_text(trouble)}; waiting for the store", "yellow"))
    elif snapshot is not None:
        lines += _agents(snapshot, progress, to)
        lines += [to.paint(line, "yellow") for line in _troubles(progress)]
    return lines


def _troubles(progress: Sequence[SweepProgress]) -> list[str]:
    return [f"! {flatten_text(trouble)}" for trouble in dict.fromkeys(one.trouble for one in progress) if trouble]


def _sweep(one: SweepProgress, best: BestJob | None, widest: int, to: Terminal) -> list[str]:
    done = one.total - one.unfinished
    name = cut_text(flatten_text(one.name), widest)
    head = f"{name}{' ' * (widest - measure_width(name))}"
    share = f"{done:,}/{one.total:,}"
    tail = "  ".join([share, *_pace(one)])
    room = (to.width or 100) - widest - measure_width(tail) - 4
    lines = [f"{to.paint(head, 'bold')}  {_bar(one, min(room, BAR), to)}  {tail}"]
    if room < SHORT_BAR:  # how far it is goes before everything else
        lines = [f"{share} {to.paint(name, 'bold')}", *(f"  {part}" for part in _pace(one))]
    lines.append(f"{' ' * widest}  {format_state_counts(one.counts, to)}")
    if best is not None:
        lines.append(f"{' ' * widest}  {format_best_job(best)}")
    return lines


def _bar(one: SweepProgress, columns: int, to: Terminal) -> str:
    parts = [
        ("─" if state in _BEGUN else "━", one.counts.get(state, 0), colour)
        for state, colour in STATES.items()
        if state is not JobState.QUEUED
    ]
    return draw_bar(parts, one.total, max(columns, SHORT_BAR), to)


def format_best_job(best: BestJob) -> str:
    """Return "best loss 0.12 (lr=0.1 seed=3)"."""
    return f"best {flatten_text(best.metric)} {format_cell(best.value)} ({flatten_text(best.parameters)})"


def _pace(one: SweepProgress) -> list[str]:
    if one.rate is None or not one.unfinished:
        return []
    return [format_rate(one.rate), f"{format_elapsed(one.eta)} left"]


def format_rate(rate: float) -> str:
    """Return jobs a second, or a minute where that is less than one: "12/s", "1.5/s", "20.0/min"."""
    if rate < 1:
        return f"{rate * 60:.1f}/min"
    return f"{rate:.1f}/s" if rate < 10 else f"{rate:.0f}/s"


def _agents(snapshot: StoreSnapshot, progress: Sequence[SweepProgress], to: Terminal) -> list[str]:
    fleets = {
        fleet for one in progress if one.view.state.revision for fleet in one.view.state.revision.settings.providers
    }
    alive = [agent for agent in snapshot.agents if agent.fleet in fleets and agent.alive]
    lines = [to.paint(format_living_agents(alive), "dim")]
    return lines + [to.paint(f"! {flatten_text(alert)}", "yellow") for alert in _alerts(alive)]


def _alerts(agents: Sequence[AgentView]) -> list[str]:
    alive = [agent for agent in agents if agent.alive]
    # Of several, people must know which one it is.
    named = len(alive) > 1
    told = ((f"{agent.machine}: " if named else "") + agent.alert for agent in alive if agent.alert)
    return [*dict.fromkeys(told), *format_telemetry(agents)]


def format_living_agents(alive: Sequence[AgentView]) -> str:
    """Return "2 agents at work", or that one is being started."""
    return f"{format_plural(len(alive), 'agent')} at work" if alive else "an agent is starting"


def format_progress(
    snapshot: StoreSnapshot | None, progress: Sequence[SweepProgress], best: Mapping[str, BestJob], trouble: str
) -> list[str]:
    """Return one plain line a sweep, and one for each thing that an agent complains of."""
    plain = Terminal()
    if trouble:
        return [f"{flatten_text(trouble)}; waiting for the store"]
    lines = []
    for one in progress:
        rest = format_state_counts(one.counts, plain, leave_out=[JobState.SUCCEEDED])
        found = best.get(one.name)
        parts = [f"{one.total - one.unfinished:,}/{one.total:,} done", rest, ", ".join(_pace(one))]
        parts += [format_best_job(found)] if found else []
        lines.append(f"{flatten_text(one.name)}: {'; '.join(filter(None, parts))}")
    lines += [f"! {flatten_text(alert)}" for alert in _alerts(snapshot.agents if snapshot else ())]
    return lines + _troubles(progress)
