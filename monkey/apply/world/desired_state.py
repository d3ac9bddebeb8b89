"""From spec files to what is desired: expanded, its code hashed, its jobs identified."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monkey.apply.ci_refusals import check_datasets_inside
from monkey.apply.world.absent_datasets import AbsentDataset, Recalled
from monkey.apply.world.dataset_loader import DatasetLoader, measure_dataset
from monkey.errors import ForgeError, MonkeyError, PlanError
from monkey.forge.forge_location import locate_forge
from monkey.plan.desired import DesiredSweep
from monkey.spec.command.shell_advice import suggest_activation
from monkey.spec.command.word_split import split_words
from monkey.spec.job.column_names import explain_columns
from monkey.spec.job.job_id import assign_job_ids
from monkey.spec.job.job_table import JobTable
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.yaml.mistakes import Mistake, find_nearest_word
from monkey.spec.yaml.number_advice import list_number_advice
from monkey.store.content.upload_progress import Begin, show_no_progress
from monkey.transfer.code.code_snapshot import CodeSnapshot, read_code, read_git_info
from monkey.transfer.code.git_files import find_work_tree, read_remote_url
from monkey.transfer.datasets.dataset import Dataset
from monkey.transfer.images.image_digests import ImageDigests

if TYPE_CHECKING:
    from monkey.spec.project.notify_channel import NotifyChannel
    from monkey.spec.project.project import Project
    from monkey.spec.sweep.models import Spec

#: Where specs are, and what they end in.
SPECS, YAML = "specs", (".yaml", ".yml")

_OUTPUT = (
    "{} is being written by this command, so it is no part of the code now, but will be next time: call it *.log, "
    "let git ignore it, or name the code with `code: include:`"
)
_REPOSITORY = (
    "{0} is a repository of its own and no submodule, so its files are no part of the code: if jobs need them, make it "
    "a submodule (`git submodule add URL {0}`) or commit a copy of its files; else let git ignore it"
)
#: A warning, since the key of a test is part of the code that tests it.
_VOUCHED = (
    "{0}, which {1},{2} code, as git tracks it or `code.include` names it in full: everyone who can read the store "
    "can read it"
)


@dataclass(frozen=True)
class LoadedSpec:
    """One spec, ready to be compared and applied."""

    desired: DesiredSweep
    code: CodeSnapshot
    #: The spec as written.
    text: str
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    #: Datasets that are not on this machine, and are in the store.
    absent: Mapping[str, AbsentDataset] = field(default_factory=dict)


def list_spec_files(project: Project, named: Sequence[str] = ()) -> list[Path]:
    """Return the named spec files, those of named directories, or all of the project's.

    Raises MonkeyError where there are none.
    """
    specs = project.root / SPECS
    for path in map(Path, named):
        if not path.exists():
            names = {file.stem: file.name for file in _list_files(specs)}
            hint = "name a file, such as specs/experiment.yaml; or none, for all"
            if near := find_nearest_word(path.stem, names):
                hint = f"did you mean {SPECS}/{names[near]}?"
            raise MonkeyError(f"there is no spec {str(path.absolute())!r}", hint=hint)
    return [file for path in (map(Path, named) if named else [specs]) for file in _specs_at(path)]


def _list_files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.glob("*") if file.suffix in YAML and _is_file(file))


def _specs_at(path: Path) -> list[Path]:
    path = path.absolute()
    if path.exists() and not path.is_dir():
        return [path]
    files = _list_files(path)
    if not files:
        raise MonkeyError(f"there is no spec in {path}", hint="`monkey init` writes a first one")
    return files


def read_specs(project: Project, files: Iterable[Path], drafts: Mapping[Path, str] | None = None) -> list[Spec]:
    """Read the specs; `drafts`: texts that are read in place of files of the project.

    Raises SpecError with the problems of all of them.
    """
    with _no_plugins():
        from monkey.spec.sweep.load import load_specs

    specs = load_specs(files, project.root, project.providers, drafts)
    check_datasets_inside(project, specs)
    return specs


@contextmanager
def _no_plugins() -> Iterator[None]:
    """Keep pydantic, which is imported with the first spec, from looking through all installed packages for plugins."""
    name = "PYDANTIC_DISABLE_PLUGINS"
    before = os.environ.get(name)
    os.environ[name] = "__all__"
    try:
        yield
    finally:
        # Jobs inherit our environment; theirs is not ours to change.
        os.environ.pop(name) if before is None else os.environ.update({name: before})


def desire_specs(
    project: Project,
    specs: Sequence[Spec],
    begin: Begin = show_no_progress,
    recalled: Recalled | None = None,
    besides: Path | None = None,
) -> list[LoadedSpec]:
    """Say what these specs want; `begin` receives datasets that are hashed, `recalled` names those that are not here.

    `besides`: see `DatasetLoader`. Raises SpecError, and PlanError for code that cannot be taken.
    """
    return _desire(project, specs, DatasetLoader(project.root, begin, recalled, besides))


def desire_without_data(project: Project, specs: Sequence[Spec]) -> list[LoadedSpec]:
    """Say what these specs want, but for their datasets and images, which it does not look up: jobs' ids are none.

    Raises as `desire_specs` does.
    """
    return _desire(project, specs, None)


def _desire(project: Project, specs: Sequence[Spec], shelf: DatasetLoader | None) -> list[LoadedSpec]:
    git: Mapping[str, Any] | None = read_git_info(project.root)
    leave_out = {path.relative_to(project.root) for path in (project.root / SPECS).glob("*") if _is_spec(path)}
    leave_out |= {Path(spec.source) for spec in specs}
    codes = _Codes(project.root, leave_out, project.store)
    images = ImageDigests()
    digests = [images.of(spec) if shelf else None for spec in specs]
    wanted = [_wanted(spec, git, codes, shelf, image) for spec, image in zip(specs, digests, strict=True)]
    notify = _locate_channels(project)
    return [replace(each, desired=_sent_to(each.desired, project, notify)) for each in wanted]


def _sent_to(desired: DesiredSweep, project: Project, notify: list[NotifyChannel]) -> DesiredSweep:
    """Return where metrics and notices go, and how much of logs is kept."""
    added = replace(desired.settings, influx=project.influx, notify=notify, log_limit=project.log_limit)
    return replace(desired, settings=added)


def _locate_channels(project: Project) -> list[NotifyChannel]:
    """Return whom to tell, with where the forge is: machines know neither monkey.yaml nor the remote.

    CI's own variables do not count here: they name the forge as a runner reaches it. Raises SpecError.
    """
    found = []
    for at, channel in enumerate(project.notify):
        if channel.kind == "forge":
            top = find_work_tree(project.root)
            try:
                kind, api, repository = locate_forge(project.forge, read_remote_url(top) if top else "")
            except ForgeError as exc:
                file = project.read_document()
                key = ("notify", at, "forge") if isinstance(file.data["notify"], list) else ("notify", "forge")
                raise file.error([Mistake(key, exc.message, exc.hint)]) from exc
            channel = replace(channel, forge=ForgeSettings(kind, api, repository))
        found.append(channel)
    return found


def _is_spec(path: Path) -> bool:
    return path.suffix in (*YAML, ".json") and _is_file(path)


def _is_file(path: Path) -> bool:
    """Return whether a path is a file, or a link, which may lead nowhere: reading it says so."""
    return path.is_file() or path.is_symlink()


class _Codes:
    """The code of the specs: each root is read once, whatever many specs share it."""

    def __init__(self, root: Path, leave_out: Iterable[Path], store: str) -> None:
        self._root, self._leave_out = root, list(leave_out)
        #: A store in a directory, which may lie in the project: as code, it would change with each apply.
        self._stores = [store] if Path(store).is_absolute() else []
        self._known: dict[tuple[str, tuple[str, ...], tuple[str, ...]], CodeSnapshot] = {}

    def of(self, spec: Spec) -> CodeSnapshot:
        """Return the spec's code, less its datasets, which travel by themselves, and the store."""
        root, include, data = spec.code.root, tuple(spec.code.include or ()), tuple(sorted(spec.datasets.values()))
        if (root, include, data) not in self._known:
            at = self._root / root
            names = {os.path.relpath(self._root / path, at) for path in self._leave_out}
            trees = [os.path.relpath(self._root / path, at) for path in (*data, *self._stores)]
            self._known[root, include, data] = read_code(at, include, names, without=trees, project=self._root)
        return self._known[root, include, data]


def _wanted(
    spec: Spec, git: Mapping[str, Any] | None, codes: _Codes, shelf: DatasetLoader | None, image: str | None
) -> LoadedSpec:
    from monkey.spec.sweep.expand import expand_spec
    from monkey.spec.sweep.load import place_equivalences

    code, (datasets, absent) = codes.of(spec), shelf.of(spec) if shelf else ({}, {})
    known = {name: data.oid for name, data in datasets.items()} | {name: one.named.oid for name, one in absent.items()}
    oids = {name: known[name] for name in spec.datasets if name in known}
    recipe = spec.recipe(code.hash, oids, image)
    table, notes = expand_spec(spec)
    advice = suggest_activation(spec.command)
    desired = DesiredSweep(
        name=spec.name,
        source=spec.source,
        spec_text=spec.text,
        recipe=recipe,
        settings=replace(spec.settings(), dataset_files=_file_names(datasets, absent)),
        table=assign_job_ids(table, recipe),
        code_files=code.files,
        code_root=spec.code.root,
        code_bytes=code.size,
        untracked=[Path(spec.code.root, path).as_posix() for path in code.untracked],
        credentials={Path(spec.code.root, path).as_posix(): why for path, why in code.credentials.items()},
        datasets={name: measure_dataset(dataset) for name, dataset in datasets.items()},
        git=git,
        equivalences=place_equivalences(spec),
        warnings=(
            *notes,
            *list_number_advice(spec.document),
            *([advice] if advice else []),
            *_warn_of_lost_failures(spec),
            *_warn_of_columns(spec, table),
            *(_OUTPUT.format(path) for path in code.left_out),
            *(_REPOSITORY.format(Path(spec.code.root, path)) for path in code.repositories),
            *_warn_of_vouched(spec.code.root, code.vouched),
            *(one.words(name) for name, one in absent.items()),
        ),
    )
    return LoadedSpec(desired, code, spec.text, datasets, absent)


def _warn_of_lost_failures(spec: Spec) -> Iterator[str]:
    if isinstance(spec.command, list) or split_words(spec.command) is not None:
        return  # no script
    from monkey.spec.command.lost_failures import list_lost_failures

    for offset, told in list_lost_failures(spec.command):
        yield f"{spec.source}:{spec.document.place(Mistake(('command',), '', offset=offset)).line}: {told}"


def _warn_of_columns(spec: Spec, table: JobTable) -> Iterator[str]:
    for path, told in explain_columns(table.columns, spec.settings().metric):
        yield f"{spec.source}:{spec.document.place(Mistake(path, '', on_key=True)).line}: {told}"


def _warn_of_vouched(root: str, vouched: Mapping[str, str]) -> Iterator[str]:
    """Yield one warning for all files that may hold credentials and are code all the same."""
    if vouched:
        path, why = min(vouched.items())
        more = f", and {len(vouched) - 1} more files like it are" if len(vouched) > 1 else " is"
        yield _VOUCHED.format(Path(root, path), why, more)


def _file_names(datasets: Mapping[str, Dataset], absent: Mapping[str, AbsentDataset]) -> dict[str, str]:
    names = {name: Path(dataset.root).name for name, dataset in datasets.items() if dataset.is_file}
    return names | {name: Path(one.path).name for name, one in absent.items() if one.is_file}


def check_providers(project: Project, wanted: Iterable[LoadedSpec]) -> None:
    """Raise PlanError for a sweep whose provider the project does not have."""
    for want in wanted:
        for name in want.desired.settings.providers:
            if name not in project.providers:
                raise PlanError(
                    f"{want.desired.source}: expected one of the project's providers "
                    f"({', '.join(sorted(project.providers))}), found {name!r}",
                    hint="`providers:` in monkey.yaml names them; `provider:` in a spec chooses",
                )
