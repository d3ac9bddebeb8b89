"""The arguments of a pilot's agent, but for its name and its directories. Pure."""

from __future__ import annotations

from monkey.spec.job.counted_resources import spell_counts
from monkey.spec.job.lease_length import spell_lease_argument
from monkey.spec.project.provider import Provider


def list_agent_arguments(provider: Provider, store: str, project: str, fleet: str) -> list[str]:
    """Return them; `store`: its URL or path, as the pilot opens it."""
    arguments = ["--store", store, "--project", project, "--fleet", fleet]
    arguments += ["--idle-timeout", f"{provider.idle_timeout:g}"]
    arguments += ["--cache-size", str(provider.cache_size)] if provider.cache_size is not None else []
    arguments += ["--runtime", provider.runtime] if provider.runtime is not None else []
    arguments += ["--resources", spell_counts(provider.resources)] if provider.resources else []
    arguments += spell_lease_argument(provider.lease)
    return arguments + (["--max-slots", str(provider.max_slots)] if provider.max_slots is not None else [])
