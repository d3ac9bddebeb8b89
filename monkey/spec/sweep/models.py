"""The spec as a value: fields, their types and short forms. What fields mean to each other is in `checks`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, PrivateAttr

from monkey.spec.job.expires import Expires
from monkey.spec.job.expires import read as read_expires
from monkey.spec.job.job_table import Value
from monkey.spec.job.recipe import BUILD_TIMEOUT, Recipe, Settings
from monkey.spec.job.recipe import Resources as JobResources
from monkey.spec.job.stop_when import Rule
from monkey.spec.job.stop_when import read as read_rules
from monkey.spec.parameters.parameters import Parameter, declare
from monkey.spec.sweep.datasets import declare_datasets
from monkey.spec.yaml import environment_names
from monkey.spec.yaml.document import Document
from monkey.spec.yaml.mistakes import Mistake, Mistakes, describe, wrong
from monkey.spec.yaml.units import duration, size

#: Jobs of one sweep; also draws of a random search.
MAX_JOBS = 5_000_000

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def _sweep_name(raw: Any) -> str:
    if not isinstance(raw, str) or not NAME.match(raw):
        hint = "use letters, digits, '.', '_' and '-', at most 63, first a letter or digit"
        raise wrong(f"expected a name, found {describe(raw)}", hint)
    return raw


def _word(raw: Any, what: str) -> str:
    """Take text, and whole numbers as they are written; a float would not come out as it went in."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    if not isinstance(raw, str):
        raise wrong(f"expected {what}, found {describe(raw)}", "put it in quotes")
    return raw


def _command(raw: Any) -> str | list[str]:
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, list) or not raw:
        hint = "write it as one line, or as a list of words"
        raise wrong(f"expected a command, found {describe(raw)}", hint)
    return _each(raw, "a word of the command")


def _each(raw: list[Any], what: str) -> list[str]:
    words, mistakes = [], []
    for at, item in enumerate(raw):
        try:
            words.append(_word(item, what))
        except Mistakes as error:
            mistakes += [m.under((at,)) for m in error.mistakes]
    if mistakes:
        raise Mistakes(mistakes)
    return words


def _one_or_many(raw: Any) -> Any:
    return [raw] if isinstance(raw, str) else raw


def _files(raw: Any) -> list[str]:
    """Read globs of files below the working directory."""
    raw = _one_or_many(raw)
    if not isinstance(raw, list):
        raise wrong(f"expected a list of files, found {describe(raw)}", "write [model.npz, plots/]")
    mistakes = [
        Mistake((at,), f"expected a file below the working directory, found {describe(item)}", "write a relative path")
        for at, item in enumerate(raw)
        if not isinstance(item, str) or not item.strip() or item.startswith(("/", "~")) or ".." in item.split("/")
    ]
    if mistakes:
        raise Mistakes(mistakes)
    return raw


def _requirements(raw: Any) -> str | list[str]:
    """Read a requirements file's path, or its lines."""
    if isinstance(raw, str) and raw.strip():
        return raw
    if not isinstance(raw, list) or not raw:
        hint = "write requirements: requirements.txt, or a list: [numpy==2.3.4]"
        raise wrong(f"expected a file or a list of requirements, found {describe(raw)}", hint)
    mistakes = [
        Mistake((at,), f"expected a requirement, found {describe(item)}", "write it as pip does: numpy==2.3.4")
        for at, item in enumerate(raw)
        if not isinstance(item, str) or not item.strip() or "\n" in item.strip()
    ]
    if mistakes:
        raise Mistakes(mistakes)
    return [item.strip() for item in raw]


def _setup(raw: Any) -> str:
    if not isinstance(raw, str) or not raw.strip() or "\0" in raw:
        raise wrong(f"expected lines of shell, found {describe(raw)}", "write setup: | and the commands below it")
    return raw


def _groups(raw: Any) -> Any:
    if isinstance(raw, list) and raw and all(isinstance(name, str) for name in raw):
        raise wrong("expected a list of lists of names, found a list of names", f"write zip: [[{', '.join(raw)[:60]}]]")
    return raw


def _environment_variables(raw: Any) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise wrong(f"expected a mapping of names to text, found {describe(raw)}", 'write {OMP_NUM_THREADS: "1"}')
    mistakes, env = [], {}
    for name, value in raw.items():
        if not environment_names.NAME.match(name):
            hint = "use letters, digits and _"
            mistakes.append(Mistake((name,), f"{name!r} cannot name an environment variable", hint, True))
        elif name.startswith("MONKEY_"):
            mistakes.append(
                Mistake((name,), "names that begin with MONKEY_ are monkey's own", "use another name", True)
            )
        try:
            env[name] = _word(value, "text")
        except Mistakes as error:
            mistakes += [m.under((name,)) for m in error.mistakes]
    if mistakes:
        raise Mistakes(mistakes)
    return env


def _secrets(raw: Any) -> list[str]:
    raw = _one_or_many(raw)
    if not isinstance(raw, list):
        hint = "names alone: secrets: [WANDB_API_KEY]; values stay on the machines"
        raise wrong(f"expected a list of names, found {describe(raw)}", hint)
    mistakes = []
    for at, name in enumerate(raw):
        if not isinstance(name, str) or not environment_names.NAME.match(name):
            # Never shown: it may be the value itself.
            hint = "write the variable's name alone: its value is never in a spec"
            mistakes.append(Mistake((at,), "expected the name of an environment variable", hint))
        elif environment_names.is_needed(name):
            mistakes.append(Mistake((at,), f"{name!r} is no secret: programs need it to run", "take it out"))
        elif name in raw[:at]:
            mistakes.append(Mistake((at,), f"{name!r} is listed twice", "name it once"))
    if mistakes:
        raise Mistakes(mistakes)
    return sorted(raw)


def _providers(raw: Any) -> list[str]:
    raw = _one_or_many(raw)
    if not isinstance(raw, list) or not raw or not all(isinstance(n, str) and NAME.match(n) for n in raw):
        raise wrong(f"expected a provider's name or a list of them, found {describe(raw)}", "write provider: local")
    if len(set(raw)) != len(raw):
        raise wrong("a provider is listed twice", "name each once")
    return raw


Duration = Annotated[float, PlainValidator(duration)]
Size = Annotated[int, PlainValidator(size)]
Files = Annotated[list[str], PlainValidator(_files)]
Count = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Metric(_Model):
    """What `monkey.log` calls it, and whether less or more of it is better."""

    name: str = Field(min_length=1)
    goal: Literal["minimize", "maximize"] = "minimize"


class Resources(_Model):
    """What one job takes of its machine."""

    cpus: float = Field(1, gt=0, le=4096)
    gpus: int = Field(0, ge=0, le=1024)
    memory: Size = 0


class Code(_Model):
    """Which files a job runs with; by default all that git sees below `root`."""

    root: str = "."
    include: Files | None = None


class Environment(_Model):
    """The Python environment of the jobs, built once per content."""

    python: str | None = Field(None, pattern=r"^3\.[0-9]{1,2}(\.[0-9]{1,2})?$")
    #: A file's path, or its lines.
    requirements: Annotated[str | list[str] | None, PlainValidator(_requirements)] = None
    setup: Annotated[str | None, PlainValidator(_setup)] = None
    timeout: Duration = BUILD_TIMEOUT


class Spec(_Model):
    """One sweep, as its file says it."""

    name: Annotated[str, PlainValidator(_sweep_name)]
    command: Annotated[str | list[str], PlainValidator(_command)]
    method: Literal["grid", "random"] = "grid"
    parameters: Annotated[dict[str, Parameter], PlainValidator(declare)] = Field(default_factory=dict)
    zip: Annotated[list[list[str]], BeforeValidator(_groups)] = Field(default_factory=list)
    include: list[dict[str, Any]] = Field(default_factory=list)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    metric: Metric | None = None
    seed: int = Field(0, ge=0, lt=1 << 63)
    run_cap: int | None = Field(None, ge=1, le=MAX_JOBS)
    max_concurrent_jobs: Count | None = None
    max_retries: int = Field(0, ge=0, le=1000)
    timeout: Duration | None = None
    grace: Duration = 10.0
    checkpoint_every: Duration = 600.0
    checkpoint_keep: int = Field(2, ge=1, le=1000)
    fail_fast: bool = False
    stop_when: Annotated[list[Rule], PlainValidator(read_rules)] = Field(default_factory=list)
    resources: Resources = Field(default_factory=Resources)
    code: Code = Field(default_factory=Code)
    #: Name to path, as written.
    datasets: Annotated[dict[str, str], PlainValidator(declare_datasets)] = Field(default_factory=dict)
    environment: Environment = Field(default_factory=Environment)
    env: Annotated[dict[str, str], PlainValidator(_environment_variables)] = Field(default_factory=dict)
    secrets: Annotated[list[str], PlainValidator(_secrets)] = Field(default_factory=list)
    outputs: Files = Field(default_factory=list)
    provider: Annotated[list[str], BeforeValidator(_providers)] = Field(default_factory=lambda: ["local"])
    priority: int = Field(0, ge=-1000, le=1000)
    expires: Annotated[Expires | None, PlainValidator(read_expires)] = None

    _document: Document = PrivateAttr()
    _requirements: str | None = PrivateAttr(None)

    @property
    def text(self) -> str:
        """The file as it was read."""
        return self._document.text

    @property
    def source(self) -> str:
        """The file's path, relative to the project."""
        return self._document.file

    @property
    def document(self) -> Document:
        """The file with its lines: places mistakes that show only later."""
        return self._document

    def recipe(self, code: str, datasets: Mapping[str, str] | None = None) -> Recipe:
        """Return what all jobs have in common, given the hashes of code and datasets, and the requirements read."""
        asked = self.environment.model_dump(exclude={"timeout"}) | {"requirements": self._requirements}
        environment = {name: text for name, text in asked.items() if text is not None}
        return Recipe(
            command=self.command,
            code=code,
            datasets=dict(datasets or {}),
            environment=environment,
            env=self.env,
            outputs=sorted(set(self.outputs)),
        )

    def settings(self) -> Settings:
        """Return how the jobs are to be run."""
        return Settings(
            max_retries=self.max_retries,
            timeout=self.timeout,
            build_timeout=self.environment.timeout,
            grace=self.grace,
            checkpoint_every=self.checkpoint_every,
            checkpoint_keep=self.checkpoint_keep,
            max_concurrent_jobs=self.max_concurrent_jobs,
            fail_fast=self.fail_fast,
            priority=self.priority,
            providers=self.provider,
            resources=JobResources(**self.resources.model_dump()),
            metric=self.metric.name if self.metric else None,
            maximize=self.metric is not None and self.metric.goal == "maximize",
            secrets=self.secrets,
            stop_when=self.stop_when,
            expires=self.expires,
        )


__all__ = ["MAX_JOBS", "NAME", "Code", "Environment", "Metric", "Resources", "Spec", "Value"]
