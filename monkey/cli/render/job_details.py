"""All about one job or one sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from monkey.apply.inspect.attempt_records import find_owner
from monkey.apply.inspect.result_facts import ResultFacts
from monkey.cli.render.attempt_lines import format_attempts, parse_applied, serialize_attempts
from monkey.cli.render.curves.curve_tables import add_sparklines
from monkey.cli.render.evidence.fact_lines import format_facts, serialize_facts
from monkey.cli.render.list_tables import serialize_job, serialize_sweeps
from monkey.cli.render.parameter_text import format_parameters
from monkey.cli.render.progress_lines import format_state_counts
from monkey.cli.render.status_lines import explain_state, name_standing
from monkey.cli.terminal.text import Terminal, flatten_text, format_elapsed, format_plural
from monkey.metrics.summary import has_diverged
from monkey.metrics.usage import SKIPPED_LINES
from monkey.plan.explain import find_setting_changes, format_setting
from monkey.plan.sizes import format_size
from monkey.plan.text.describe import describe_jobs
from monkey.plan.text.short_texts import cut_text
from monkey.plan.text.terminal_codes import read_log_line
from monkey.protocol.entries import EndEntry
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.record.job_attempts import AttemptRecord
from monkey.protocol.status.store_snapshot import JobView, StoreSnapshot, SweepView
from monkey.protocol.sweeps.revision import Revision
from monkey.results.causes.ended_jobs import EndedJobs
from monkey.results.causes.failure_report import serialize_failures
from monkey.results.curves.curve import Curve
from monkey.results.failure_kinds import find_last_line, group_failures, sign_failure
from monkey.spec.command.command import show_command
from monkey.spec.job.recipe import JobResources, SweepSettings
from monkey.spec.project.grafana_links import make_grafana_link

#: Last lines of the log that are shown, and the files of code or outputs.
LOG_LINES, _MAX_FILES = 10, 20


def format_job_details(
    view: SweepView,
    job: str,
    found: Sequence[AttemptRecord],
    keys: Keys,
    store: str,
    to: Terminal,
    came_from: ResultFacts | None = None,
    curves: Mapping[str, Curve] | None = None,
    grafana: str = "",
) -> list[str]:
    """Return a job: what it is, how it went, each attempt, what it measured and left, and what that came from."""
    revision, seen = view.state.revision, view.view(job)
    assert revision is not None  # the job was found in it
    parameters = revision.table.parameters(revision.rows[job])
    files = f"{store}/{_locate_files(keys, find_owner(view, job), seen, found)}"
    reason = explain_state(view, seen)
    state = f"{seen.state}: {reason}" if reason and seen.state not in ("running", "cancelled") else str(seen.state)
    facts = [
        ("job", job),
        ("sweep", view.state.name + (f" (shared with {', '.join(seen.shared)})" if seen.shared else "")),
        ("state", reason if seen.state == "cancelled" else state),
        ("signature", sign_failure(seen, parameters)),
        ("parameters", format_parameters(parameters)),
        ("command", show_command(revision.recipe.command, parameters)),
        ("image", _format_image(revision)),
        ("adopts", revision.adopted.get(job, "")),
        ("agent", seen.agent or ""),
        ("host", seen.host),
        ("time", format_elapsed(seen.seconds)),
        ("files", files if seen.attempt else ""),
        ("dashboard", make_grafana_link(grafana, view.state.name, job, seen.started or 0.0)),
    ]
    lines = _facts(facts, to) + _part("attempts", format_attempts(found, seen, parse_applied(revision.at), to), to)
    lines += _part("usage", format_usage(seen.usage, revision.settings.resources), to)
    lines += _part("came from", format_facts(came_from), to)
    lines += _part("metrics", _metrics(seen.metrics, curves or {}, to), to)
    outputs = [
        f"{flatten_text(f'{store}/{view.locate_output(keys, seen, path)}')}  {to.paint(sha[:12], 'dim')}"
        for path, sha in seen.outputs.items()
    ]
    lines += _part("outputs", _some(outputs), to)
    tail = [f"│ {flatten_text(read_log_line(line))}" for line in seen.log_tail[-LOG_LINES:]]
    return lines + _part("end of its log", [cut_text(line, to.width) if to.width else line for line in tail], to)


def _locate_files(keys: Keys, job: str, seen: JobView, found: Sequence[AttemptRecord]) -> str:
    """Return the key of what the newest attempt left: the prefix of objects, or its end, where that holds the files."""
    ends = [each for each in found if each.k == seen.attempt and isinstance(each.after, EndEntry)]
    if ends and isinstance(end := ends[0].after, EndEntry) and end.files is not None and not end.outputs:
        return keys.job_log(job) + spell_number(ends[0].end_k)
    return keys.out(job, seen.attempt)


def _format_image(revision: Revision) -> str:
    """Return the image that jobs run in, by its name and the digest that they are pinned to; "" for none."""
    name, digest = revision.settings.image or "", revision.recipe.image or ""
    return name if name.endswith(digest) else f"{name} ({digest})".lstrip()


def format_usage(usage: dict[str, float], asked: JobResources) -> list[str]:
    """Return what a job used of its machine beside what it asked for, a line each."""
    of_memory = f", of {format_size(asked.memory)} asked for" if asked.memory else ""
    told = {
        "memory_bytes": f"memory {format_size(usage.get('memory_bytes', 0))} at its peak{of_memory}",
        "cpus": f"CPUs {usage.get('cpus', 0):.3g} on average, of {asked.cpus:g} asked for",
        "gpu_percent": f"GPUs {usage.get('gpu_percent', 0):.3g}% busy on average, of {asked.gpus} asked for",
        "gpu_memory_bytes": f"GPU memory {format_size(usage.get('gpu_memory_bytes', 0))} at its peak",
        SKIPPED_LINES: f"lines or values of its metrics that were skipped: {usage.get(SKIPPED_LINES, 0):,}",
    }
    return [line for name, line in told.items() if name in usage]


def _metrics(metrics: dict[str, dict[str, Any]], curves: Mapping[str, Curve], to: Terminal) -> list[str]:
    names = ("min", "max", "step", "count", "nonfinite")
    rows = [
        [metric, "nan" if has_diverged(summary) else summary.get("last"), *(summary.get(name) for name in names)]
        for metric, summary in metrics.items()
    ]
    inside = replace(to, width=to.width and to.width - 2)
    drawn = [curves[metric].place()[1] if metric in curves else [] for metric in metrics]
    return add_sparklines(["METRIC", "LAST", *(name.upper() for name in names)], rows, drawn, inside)


def format_sweep_details(view: SweepView, snapshot: StoreSnapshot, to: Terminal, grafana: str = "") -> list[str]:
    """Return a sweep: its newest revision, settings, code, and how far it is."""
    revision, counts = view.state.revision, view.counts
    assert revision is not None  # it was found
    waiting = {fleet: marks for fleet, of in snapshot.queue.items() if (marks := sorted(of.find_open(view.state.name)))}
    facts = [
        ("sweep", view.state.name),
        ("state", name_standing(view, counts)),
        ("jobs", format_state_counts(counts, to)),
        ("revision", f"{view.state.revision_at}, applied {revision.at} by {revision.author}"),
        ("spec", revision.source),
        ("commit", _commit(revision.git)),
        ("command", show_command(revision.recipe.command, {})),
        ("image", _format_image(revision)),
        (
            "code",
            f"{revision.recipe.code[:12]}, {format_plural(len(revision.code_files), 'file')}"
            if revision.recipe.code
            else "",
        ),
        ("settings", _settings(revision.settings)),
        ("queued on", ", ".join(waiting)),
        ("dashboard", make_grafana_link(grafana, view.state.name, since=parse_applied(revision.at))),
        ("adopted", format_plural(len(revision.adopted), "result") if revision.adopted else ""),
    ]
    matrix = describe_jobs(revision.table, range(len(revision.table)))
    lines = _facts(facts, to) + _part("matrix", [flatten_text(line) for line in matrix], to)
    lines += _part("failures", _failures(view), to)
    return lines + _part("code", _some(map(flatten_text, sorted(revision.code_files))), to)


def _failures(view: SweepView) -> list[str]:
    """Return each kind of failure in a line, and the rule that separates it in another."""
    lines, ended = [], EndedJobs(view)
    for kind in group_failures(view)[:_MAX_FILES]:
        said = ": ".join(filter(None, (kind.first.reason or "no reason was recorded", find_last_line(kind.first))))
        rule = ended.explain(kind)
        lines.append(f"{kind.signature}  {format_plural(kind.count, 'job')}: {said}")
        lines += [f"        {rule}"] if rule else []
    return list(map(flatten_text, lines))


def _commit(git: dict[str, Any] | None) -> str:
    if git is None:
        return ""
    return f"{git['commit'][:12]} on {git['branch'] or 'no branch'}{', with changes' if git['dirty'] else ''}"


def _settings(settings: SweepSettings) -> str:
    """Say every setting that is not as it is without a word of it."""
    told = []
    for name, _, value in find_setting_changes(SweepSettings(), settings):
        if name not in ("metric", "maximize", "take", "image"):
            told.append(f"{name} {format_setting(name, value)}")
    return ", ".join(told)


def _some(lines: Iterable[str]) -> list[str]:
    every = list(lines)
    return (
        every if len(every) <= _MAX_FILES else [*every[: _MAX_FILES - 1], f"… and {len(every) - _MAX_FILES + 1} more"]
    )


def _facts(facts: Iterable[tuple[str, str]], to: Terminal) -> list[str]:
    return [f"{to.paint(f'{name:<11}', 'bold')} {flatten_text(value)}" for name, value in facts if value]


def _part(title: str, lines: list[str], to: Terminal) -> list[str]:
    return ["", to.paint(title, "bold"), *(f"  {line}" for line in lines)] if lines else []


def serialize_job_details(
    view: SweepView, job: str, found: Sequence[AttemptRecord], came_from: ResultFacts | None = None
) -> dict[str, Any]:
    """Return a job for programs, with its attempts and the facts of its result."""
    revision = view.state.revision
    assert revision is not None  # the job was found in it
    seen, parameters = view.view(job), revision.table.parameters(revision.rows[job])
    digest, signature = revision.recipe.image, sign_failure(seen, parameters)
    image = {"name": revision.settings.image, "digest": digest} if digest else None
    more = {"attempts": serialize_attempts(found), "facts": serialize_facts(came_from), "log_tail": seen.log_tail}
    return {**serialize_job(view, seen, parameters), "signature": signature, "image": image, **more}


def serialize_sweep_details(view: SweepView) -> dict[str, Any]:
    """Return a sweep for programs: as `list sweeps` does, with its recipe, settings and code."""
    revision = view.state.revision
    assert revision is not None  # it was found
    return {
        **serialize_sweeps([view])[0],
        "recipe": revision.recipe.to_json(),
        "settings": revision.settings.to_json(),
        "code_files": revision.code_files,
        "spec": revision.spec_text,
        "failures": serialize_failures(view),
    }
