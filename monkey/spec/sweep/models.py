"""The spec as a value: fields, their types and short forms. What fields mean to each other is in `checks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr
from pydantic_core import CoreSchema, core_schema

from monkey.spec.job.counted_resources import CountedResources, nest_counts
from monkey.spec.job.equivalences import Equivalence, parse_equivalences
from monkey.spec.job.expires import Expiry, parse_expiry
from monkey.spec.job.image_reference import ImageReference, parse_image_reference
from monkey.spec.job.metric_sources import MetricSource, parse_metric_sources
from monkey.spec.job.recipe import BUILD_TIMEOUT_SECONDS, JobResources, MetricTake, Recipe, SweepSettings
from monkey.spec.job.stop_when import StopRule, parse_stop_rules
from monkey.spec.machines.provider_choice import ProviderChoice, parse_provider_choices
from monkey.spec.parameters.parameters import Parameter, parse_parameters
from monkey.spec.parameters.repeats import parse_repeats
from monkey.spec.project.provider import Provider
from monkey.spec.sweep.datasets import parse_datasets
from monkey.spec.sweep.sweep_names import parse_sweep_name
from monkey.spec.yaml import environment_names
from monkey.spec.yaml.document import YamlDocument
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, make_mistake_error
from monkey.spec.yaml.units import parse_duration, parse_gpu_count, parse_size

#: Jobs of one sweep; also draws of a random search.
MAX_JOBS = 5_000_000


def _parse_word(raw: Any, what: str) -> str:
    """Take text, and whole numbers as they are written; a float would not come out as it went in."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    if not isinstance(raw, str):
        raise make_mistake_error(f"expected {what}, found {describe_value(raw)}", "put it in quotes")
    return raw


def _parse_command(raw: Any) -> str | list[str]:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list) or not raw:
        hint = "write it as one line, or as a list of words"
        raise make_mistake_error(f"expected a command, found {describe_value(raw)}", hint)
    return _parse_words(raw, "a word of the command")


def _parse_words(raw: list[Any], what: str) -> list[str]:
    words, mistakes = [], []
    for at, item in enumerate(raw):
        try:
            words.append(_parse_word(item, what))
        except MistakesError as error:
            mistakes += [m.under((at,)) for m in error.mistakes]
    if mistakes:
        raise MistakesError(mistakes)
    return words


def _one_or_many(raw: Any) -> Any:
    return [raw] if isinstance(raw, str) else raw


def _parse_files(raw: Any) -> list[str]:
    """Read globs of files below the working directory."""
    raw = _one_or_many(raw)
    if not isinstance(raw, list):
        raise make_mistake_error(f"expected a list of files, found {describe_value(raw)}", "write [model.npz, plots/]")
    mistakes = [
        Mistake(
            (at,), f"expected a file below the working directory, found {describe_value(item)}", "write a relative path"
        )
        for at, item in enumerate(raw)
        if not isinstance(item, str) or not item.strip() or item.startswith(("/", "~")) or ".." in item.split("/")
    ]
    if mistakes:
        raise MistakesError(mistakes)
    return raw


def _parse_requirements(raw: Any) -> str | list[str]:
    """Read a requirements file's path, or its lines."""
    if isinstance(raw, str) and raw.strip():
        return raw
    if not isinstance(raw, list) or not raw:
        hint = "write requirements: requirements.txt, or a list: [numpy==2.3.4]"
        raise make_mistake_error(f"expected a file or a list of requirements, found {describe_value(raw)}", hint)
    mistakes = [
        Mistake((at,), f"expected a requirement, found {describe_value(item)}", "write it as pip does: numpy==2.3.4")
        for at, item in enumerate(raw)
        if not isinstance(item, str) or not item.strip() or "\n" in item.strip()
    ]
    if mistakes:
        raise MistakesError(mistakes)
    return [item.strip() for item in raw]


def _parse_setup(raw: Any) -> str:
    if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
        raise make_mistake_error(
            f"expected lines of shell, found {describe_value(raw)}", "write setup: | and the commands below it"
        )
    return raw


def _groups(raw: Any) -> Any:
    if isinstance(raw, list) and raw and all(isinstance(name, str) for name in raw):
        raise make_mistake_error(
            "expected a list of lists of names, found a list of names", f"write zip: [[{', '.join(raw)[:60]}]]"
        )
    return raw


def _environment_variables(raw: Any) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise make_mistake_error(
            f"expected a mapping of names to text, found {describe_value(raw)}", 'write {OMP_NUM_THREADS: "1"}'
        )
    mistakes, env = [], {}
    for name, value in raw.items():
        if not environment_names.VARIABLE_NAME_PATTERN.match(name):
            hint = "use letters, digits and _"
            mistakes.append(Mistake((name,), f"{name!r} cannot name an environment variable", hint, True))
        elif name.startswith("MONKEY_"):
            mistakes.append(
                Mistake((name,), "names that begin with MONKEY_ are monkey's own", "use another name", True)
            )
        try:
            env[name] = _parse_word(value, "text")
        except MistakesError as error:
            mistakes += [m.under((name,)) for m in error.mistakes]
    if mistakes:
        raise MistakesError(mistakes)
    return env


def _parse_secrets(raw: Any) -> list[str]:
    raw = _one_or_many(raw)
    if not isinstance(raw, list):
        hint = "names alone: secrets: [WANDB_API_KEY]; values stay on the machines"
        raise make_mistake_error(f"expected a list of names, found {describe_value(raw)}", hint)
    mistakes = []
    for at, name in enumerate(raw):
        if not isinstance(name, str) or not environment_names.VARIABLE_NAME_PATTERN.match(name):
            # Never shown: it may be the value itself.
            hint = "write the variable's name alone: its value is never in a spec"
            mistakes.append(Mistake((at,), "expected the name of an environment variable", hint))
        elif environment_names.is_system_variable(name):
            mistakes.append(Mistake((at,), f"{name!r} is no secret: programs need it to run", "take it out"))
        elif name in raw[:at]:
            mistakes.append(Mistake((at,), f"{name!r} is listed twice", "name it once"))
    if mistakes:
        raise MistakesError(mistakes)
    return sorted(raw)


class _Read(NamedTuple):
    """A field that a function reads: pydantic's validator builds a schema of what that returns, which takes long."""

    function: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source_type: Any, handler: object) -> CoreSchema:
        anything = core_schema.any_schema()
        return core_schema.no_info_plain_validator_function(self.function, json_schema_input_schema=anything)


_Duration = Annotated[float, _Read(parse_duration)]
_Size = Annotated[int, _Read(parse_size)]
_FileGlobs = Annotated[list[str], _Read(_parse_files)]
_PositiveCount = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MetricFields(_Model):
    """What `monkey.log` calls it, whether less or more of it is better, and which value stands for a job."""

    name: str = Field(min_length=1)
    goal: Literal["minimize", "maximize"] = "minimize"
    take: MetricTake = "last"
    last: list[str] = []


class ResourceFields(_Model):
    """What one job takes of its machine."""

    cpus: float = Field(1, gt=0, le=4096)
    gpus: Annotated[float, _Read(parse_gpu_count)] = 0
    memory: _Size = 0
    counted: CountedResources = ()


class CodeFields(_Model):
    """Which files a job runs with; by default all that git sees below `root`."""

    root: str = "."
    include: _FileGlobs | None = None


class EnvironmentFields(_Model):
    """The container image of the jobs and their Python environment, built once per content."""

    image: Annotated[ImageReference | None, _Read(parse_image_reference)] = None
    python: str | None = Field(None, pattern=r"^3\.[0-9]{1,2}(\.[0-9]{1,2})?$")
    #: A file's path, or its lines.
    requirements: Annotated[str | list[str] | None, _Read(_parse_requirements)] = None
    setup: Annotated[str | None, _Read(_parse_setup)] = None
    timeout: _Duration = BUILD_TIMEOUT_SECONDS


class Spec(_Model):
    """One sweep, as its file says it."""

    name: Annotated[str, _Read(parse_sweep_name)]
    command: Annotated[str | list[str], _Read(_parse_command)]
    method: Literal["grid", "random"] = "grid"
    parameters: Annotated[dict[str, Parameter], _Read(parse_parameters)] = Field(default_factory=dict)
    #: Parameters that run each point again.
    repeat: Annotated[dict[str, Parameter], _Read(parse_repeats)] = Field(default_factory=dict)
    zip: Annotated[list[list[str]], BeforeValidator(_groups)] = Field(default_factory=list)
    include: list[dict[str, Any]] = Field(default_factory=list)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    metric: MetricFields | None = None
    metrics: Annotated[list[MetricSource], _Read(parse_metric_sources)] = Field(default_factory=list)
    seed: int = Field(0, ge=0, lt=1 << 63)
    run_cap: int | None = Field(None, ge=1, le=MAX_JOBS)
    max_concurrent_jobs: _PositiveCount | None = None
    max_retries: int = Field(0, ge=0, le=1000)
    timeout: _Duration | None = None
    grace: _Duration = 10.0
    checkpoint_every: _Duration = 600.0
    checkpoint_keep: int = Field(2, ge=1, le=1000)
    fail_fast: bool = False
    stop_when: Annotated[list[StopRule], _Read(parse_stop_rules)] = Field(default_factory=list)
    resources: Annotated[ResourceFields, BeforeValidator(nest_counts)] = Field(default_factory=ResourceFields)
    code: CodeFields = Field(default_factory=CodeFields)
    #: Name to path, as written.
    datasets: Annotated[dict[str, str], _Read(parse_datasets)] = Field(default_factory=dict)
    environment: EnvironmentFields = Field(default_factory=EnvironmentFields)
    env: Annotated[dict[str, str], _Read(_environment_variables)] = Field(default_factory=dict)
    secrets: Annotated[list[str], _Read(_parse_secrets)] = Field(default_factory=list)
    outputs: _FileGlobs = Field(default_factory=list)
    equivalences: Annotated[list[Equivalence], _Read(parse_equivalences)] = Field(default_factory=list)
    provider: Annotated[list[ProviderChoice], _Read(parse_provider_choices)] = Field(
        default_factory=lambda: [ProviderChoice("local")]
    )
    priority: int = Field(0, ge=-1000, le=1000)
    expires: Annotated[Expiry | None, _Read(parse_expiry)] = None

    _document: YamlDocument = PrivateAttr()
    _requirements: str | None = PrivateAttr(None)
    #: Providers of the project; None where it is not known.
    _providers: Mapping[str, Provider] | None = PrivateAttr(None)

    @property
    def text(self) -> str:
        """The file as it was read."""
        return self._document.text

    @property
    def source(self) -> str:
        """The file's path, relative to the project."""
        return self._document.file

    @property
    def document(self) -> YamlDocument:
        """The file with its lines: places mistakes that show only later."""
        return self._document

    @property
    def all_parameters(self) -> dict[str, Parameter]:
        """The parameters, and those that repeat jobs behind them."""
        return {**self.parameters, **self.repeat}

    @property
    def fleets(self) -> list[str]:
        """The names of the fleets that run the jobs: of providers, and of machines that the spec chooses of them."""
        return [choice.name_fleet(self._providers) for choice in self.provider]

    def recipe(self, code: str, datasets: Mapping[str, str] | None = None, image: str | None = None) -> Recipe:
        """Return what all jobs have in common, given the hashes of code and datasets, and the image's digest."""
        asked = self.environment.model_dump(exclude={"timeout", "image"}) | {"requirements": self._requirements}
        return Recipe(
            command=self.command,
            code=code,
            datasets=dict(datasets or {}),
            environment={name: text for name, text in asked.items() if text is not None},
            image=image,
            env=self.env,
            outputs=sorted(set(self.outputs)),
        )

    def settings(self) -> SweepSettings:
        """Return how the jobs are to be run."""
        return SweepSettings(
            max_retries=self.max_retries,
            timeout=self.timeout,
            build_timeout=self.environment.timeout,
            grace=self.grace,
            checkpoint_every=self.checkpoint_every,
            checkpoint_keep=self.checkpoint_keep,
            max_concurrent_jobs=self.max_concurrent_jobs,
            fail_fast=self.fail_fast,
            priority=self.priority,
            providers=self.fleets,
            resources=JobResources(**self.resources.model_dump()),
            metric=self.metric.name if self.metric else None,
            maximize=self.metric is not None and self.metric.goal == "maximize",
            take=self.metric.take if self.metric else "last",
            repeats=list(self.repeat),
            last=self.metric.last if self.metric else [],
            secrets=self.secrets,
            stop_when=self.stop_when,
            sources=self.metrics,
            expires=self.expires,
            image=str(self.environment.image) if self.environment.image else None,
        )
