"""The recipe of a job (Recipe, part of its id), and how it is run (SweepSettings, no part of its id)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from monkey.spec.job.counted_resources import CountedResources
from monkey.spec.job.expires import Expiry
from monkey.spec.job.metric_sources import MetricSource
from monkey.spec.job.stop_when import StopRule
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.spec.project.notify_channel import NotifyChannel
from monkey.spec.yaml.mistakes import NodePath

#: Which of a metric's values stands for a job.
MetricTake = Literal["last", "best"]

#: Seconds that the build of an environment may take where the spec does not say.
BUILD_TIMEOUT_SECONDS = 3600.0
#: In the reason of a job whose environment or image failed, before the job that has the whole log.
LOG_ELSEWHERE = "its whole log: monkey logs"


@dataclass(frozen=True)
class Recipe:
    """The recipe of a job: all of its identity but the parameters. Agents run jobs from this alone."""

    #: The command as in the spec: a string, or argv.
    command: str | list[str]
    #: Hash of the code snapshot, 64 hex.
    code: str
    #: Dataset name to content hash.
    datasets: dict[str, str] = field(default_factory=dict)
    #: {"requirements": the file's text, "python": "3.11"}, as far as the spec sets them.
    environment: dict[str, str] = field(default_factory=dict)
    #: Digest of the container image, sha256:…; its name is a setting, since it may have several.
    image: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    #: Globs of files, relative to the working directory, that are kept.
    outputs: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return data that `from_json` reads, and that the identity is computed over."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Recipe:
        """Read what `to_json` wrote."""
        return cls(**data)


@dataclass(frozen=True)
class EarlierRecipe:
    """The recipe of a revision, with what else it takes to say what a job's id was then."""

    recipe: Recipe
    #: Names of the parameters, dotted where nested.
    parameters: frozenset[str]
    sweep: str
    #: Number of the revision in its sweep's log.
    number: int
    #: The git commit that it was applied from, "" for none; `dirty`: with changes on top.
    commit: str = ""
    dirty: bool = False


@dataclass(frozen=True)
class JobResources:
    """The resources that one job takes of its machine; `memory` in bytes, 0 if the spec asks for none."""

    cpus: float = 1
    #: A whole number, or a part of one GPU in thousandths.
    gpus: float = 0
    memory: int = 0
    counted: CountedResources = ()

    @property
    def amounts(self) -> dict[str, int]:
        """Return what is taken of all that jobs share by amounts, all but GPUs; see `make_amounts`."""
        return make_amounts(self.cpus, self.memory, self.counted)

    def bound_cpus(self, there: float) -> float:
        """Return how many CPUs it takes of so many: a job that asks for one takes what there is of it."""
        return there if there < self.cpus <= 1 else self.cpus

    def to_json(self) -> dict[str, Any]:
        """Return data that `from_json` reads; an older agent reads what has nothing counted."""
        plain = {"cpus": self.cpus, "gpus": self.gpus, "memory": self.memory}
        return plain | ({"counted": dict(self.counted)} if self.counted else {})

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> JobResources:
        """Read what `to_json` wrote."""
        return cls(**{**data, "counted": tuple(sorted(data.get("counted", {}).items()))})


def make_amounts(cpus: float, memory: int, counted: CountedResources) -> dict[str, int]:
    """Return amounts by the resources' names: thousandths of CPUs (sums of 0.1 must come out even), bytes, counts."""
    return {"cpus": round(cpus * 1000), "memory": memory, **dict(counted)}


@dataclass(frozen=True)
class SweepSettings:
    """The settings by which a sweep's jobs are run; a change of them makes no job stale."""

    max_retries: int = 0
    #: Seconds that an attempt may run; None for no limit.
    timeout: float | None = None
    #: Seconds that the build of the jobs' environment may take.
    build_timeout: float = BUILD_TIMEOUT_SECONDS
    #: Seconds between SIGTERM and SIGKILL.
    grace: float = 10
    max_concurrent_jobs: int | None = None
    fail_fast: bool = False
    priority: int = 0
    providers: list[str] = field(default_factory=lambda: ["local"])
    resources: JobResources = JobResources()
    #: Name of the metric that ranks results, whether larger values are better, and which value stands for a job.
    metric: str | None = None
    maximize: bool = False
    take: MetricTake = "last"
    #: Names of the parameters that only run a configuration again.
    repeats: list[str] = field(default_factory=list)
    #: Metrics whose last value stands for a job, while others have that of the best one's step.
    last: list[str] = field(default_factory=list)
    #: Seconds between copies of a running job's checkpoint to the store, and how many stay there.
    checkpoint_every: float = 600
    checkpoint_keep: int = 2
    #: Names of variables whose values only the machines know.
    secrets: list[str] = field(default_factory=list)
    #: Dataset that is a single file to the file's name, whose ending tells programs the kind of file.
    dataset_files: dict[str, str] = field(default_factory=dict)
    #: The InfluxDB that metrics are sent to, besides the store.
    influx: InfluxSettings | None = None
    #: The conditions on metrics that stop a job, or the sweep.
    stop_when: list[StopRule] = field(default_factory=list)
    #: What else metrics are read from: event files, output, tables.
    sources: list[MetricSource] = field(default_factory=list)
    #: The channels that get the sweep's notices.
    notify: list[NotifyChannel] = field(default_factory=list)
    #: When the sweep expires; None for never.
    expires: Expiry | None = None
    #: Name of the container image, with its registry and its tag or digest.
    image: str | None = None
    #: Bytes of a job's log that the store keeps, half of them from its end; 0 for all.
    log_limit: int = 0

    @property
    def agent_secrets(self) -> list[tuple[str, NodePath]]:
        """Return the secrets that agents need themselves and give to no job, each with its place in monkey.yaml."""
        influx, found = self.influx, list[tuple[str, NodePath]]()
        if influx:
            found += [(influx.token, ("metrics", "influxdb", "token"))]
            found += [(influx.password, ("metrics", "influxdb", "password"))]
        for at, channel in enumerate(self.notify):
            found += [(channel.to if channel.named else "", ("notify", at, channel.kind))]
            found += [(channel.key, ("notify", at, "key"))]
        return [(name, path) for name, path in found if name]

    @property
    def machine_secrets(self) -> list[str]:
        """Return the names of all secrets that machines must know: those of jobs, and those of agents."""
        return list(dict.fromkeys([*self.secrets, *(name for name, _ in self.agent_secrets)]))

    def to_json(self) -> dict[str, Any]:
        """Return data that `from_json` reads; fields of later versions only where they are set.

        An older agent can thus read sweeps without such a field, and cannot take on a sweep that has one.
        """
        plain = asdict(replace(self, influx=None, stop_when=[], sources=[], notify=[], expires=None, image=None))
        plain["resources"] = self.resources.to_json()
        later = {
            "influx": self.influx.to_json() if self.influx else None,
            "stop_when": [rule.to_json() for rule in self.stop_when],
            "sources": [source.to_json() for source in self.sources],
            "notify": [channel.to_json() for channel in self.notify],
            "expires": self.expires.to_json() if self.expires else None,
            "image": self.image,
            "take": self.take if self.take != "last" else None,
            "repeats": self.repeats,
            "log_limit": self.log_limit,
            "last": self.last,
        }
        return {name: value for name, value in plain.items() if name not in later} | {
            name: value for name, value in later.items() if value
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SweepSettings:
        """Read what `to_json` wrote."""
        read = {
            "resources": JobResources.from_json(data["resources"]),
            "influx": InfluxSettings.from_json(data["influx"]) if "influx" in data else None,
            "stop_when": [StopRule.from_json(rule) for rule in data.get("stop_when", ())],
            "sources": [MetricSource.from_json(source) for source in data.get("sources", ())],
            "notify": [NotifyChannel.from_json(channel) for channel in data.get("notify", ())],
            "expires": Expiry.from_json(data["expires"]) if "expires" in data else None,
        }
        return cls(**{**data, **read})
