"""The facts of a job's result, in a few lines."""

from __future__ import annotations

from typing import Any

from monkey.apply.inspect.result_facts import ResultFacts
from monkey.cli.terminal.text import flatten_text, format_plural


def format_facts(found: ResultFacts | None) -> list[str]:
    """Return what a result came from; facts that are not known have no line."""
    if found is None:
        return []
    if found.trouble:
        return [flatten_text(f"not known: {found.trouble}")]
    facts = found.facts
    lines = [_describe_python(facts), _join(facts, "os", "kernel", "machine", "libc"), _describe_cpu(facts)]
    lines += [" ".join(f"{name}={value}" for name, value in sorted(facts.get("variables", {}).items()))]
    return [flatten_text(line) for line in (*lines, _describe_gpus(facts), f"facts {found.sha256[:12]}") if line]


def _join(facts: dict[str, Any], *names: str) -> str:
    return ", ".join(facts[name] for name in names if facts.get(name))


def _describe_python(facts: dict[str, Any]) -> str:
    version = f"Python {facts['python']}" if facts.get("python") else ""
    build = f" ({facts['python_build']})" if version and facts.get("python_build") else ""
    packages = f"lock of {format_plural(len(facts['lock']), 'package')}" if "lock" in facts else ""
    return ", ".join(filter(None, (version + build, packages, facts.get("blas", ""))))


def _describe_cpu(facts: dict[str, Any]) -> str:
    flags = f" (flags {facts['cpu_flags']})" if facts.get("cpu") and facts.get("cpu_flags") else ""
    count = format_plural(facts["cpus"], "CPU") if "cpus" in facts else ""
    return ", ".join(filter(None, (facts.get("cpu", "") + flags, count)))


def _describe_gpus(facts: dict[str, Any]) -> str:
    driver = f"driver {facts['driver']}" if facts.get("driver") else ""
    return ", ".join(filter(None, (*facts.get("gpus", ()), driver)))


def serialize_facts(found: ResultFacts | None) -> dict[str, Any] | None:
    """Return the facts for programs, with their hash; None where no end names any."""
    if found is None:
        return None
    return {"sha256": found.sha256, **found.facts} | ({"trouble": found.trouble} if found.trouble else {})
