"""monkey.yaml: the project's name, store, providers, and where metrics go. Read without pydantic: all commands do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from monkey.spec.machines.provider_table import ProviderTable
from monkey.spec.project import (
    forge_settings,
    grafana_links,
    influx_settings,
    notify_channel,
    preview_limits,
    provider,
    store_url,
)
from monkey.spec.project.checkout_memo import recall_project_name
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.influx_settings import InfluxSettings
from monkey.spec.project.notify_channel import NotifyChannel
from monkey.spec.project.preview_limits import PreviewLimits
from monkey.spec.project.provider import STORE_NAME_PATTERN, Provider
from monkey.spec.yaml import document
from monkey.spec.yaml.mistakes import Mistake, MistakesError, describe_value, suggest_word
from monkey.spec.yaml.units import parse_size

#: Returns the URL of the repository that a project's root is a clone of: all clones have it, whatever they are called.
#: "" where the root is no clone, or a directory within one.
AskOrigin = Callable[[Path], str]

PROJECT_FILE = "monkey.yaml"
#: Names the store, in place of `store:`.
STORE_VARIABLE = "MONKEY_STORE"

_PLANNED_KEYS = {
    "secrets": "name them in specs; values come from the environment, or from ~/.config/monkey/secrets",
}
_DEFAULT_PROVIDERS: Mapping[str, Any] = {"local": None}
_KEYS = ("project", "store", "providers", "metrics", "notify", "log_limit", "git", "forge", "previews")
#: Bytes: the agent's own lines, and the end that a failure quotes, have room.
_MIN_LOG_LIMIT = 1 << 20


@dataclass(frozen=True)
class Project:
    """What all sweeps of a repository share."""

    root: Path
    name: str
    #: An absolute path, or a URL with its options.
    store: str
    #: By the names of fleets: those that specs derive are found, and not listed.
    providers: Mapping[str, Provider] = field(default_factory=lambda: ProviderTable({"local": Provider()}))
    #: Where metrics are sent, besides the store.
    influx: InfluxSettings | None = None
    #: The URL of the Grafana that shows them; "" for none.
    grafana: str = ""
    #: Who is told when a sweep has ended, or does not continue.
    notify: tuple[NotifyChannel, ...] = ()
    #: Bytes of each job's log that the store keeps, half of them from its end; 0 for all.
    log_limit: int = 0
    #: The branch that specs are merged into, and applied from; "" for the one that the remote calls its own.
    git_branch: str = ""
    #: Where its commits are reviewed; None where only the remote may say it.
    forge: ForgeSettings | None = None
    #: What pull requests may run before they are merged; None for nothing.
    previews: PreviewLimits | None = None
    #: The file that says so, in place of the repository's monkey.yaml; None for that one.
    file: Path | None = None
    #: Keys of monkey.yaml whose values a user chose and no repository, with the words for how.
    chosen: Mapping[str, str] = field(default_factory=dict)
    #: What a fresh clone would be called: as its repository, or its directory. "" where monkey.yaml names the project.
    derived_name: str = field(default="", compare=False)

    def read_document(self) -> document.YamlDocument:
        """Return the file again, to show lines of it. Raises SpecError."""
        return document.parse_document(_read_text(self.root, self.file), str(self.file or PROJECT_FILE))


def load_project(
    start: Path, file: Path | None = None, store: str | None = None, ask_origin: AskOrigin = lambda root: ""
) -> Project:
    """Find and read the monkey.yaml above `start`; without one, the repository (or `start`) with defaults.

    `file`, `store`: what a user chose in place of that monkey.yaml, and of its `store:`. `ask_origin` is asked where no
    `project:` is given; what the checkout remembers comes before it. Raises SpecError.
    """
    root = find_root(start)
    path = root / PROJECT_FILE
    data = _read_data(root, file) if file or path.exists() or path.is_symlink() else {}
    chosen = dict.fromkeys(_KEYS, "--project-file") if file else {}
    if store:
        data, chosen = {**data, "store": store}, {**chosen, "store": STORE_VARIABLE}
    name, derived = str(data.get("project", "")), ""
    if not name:
        derived = _name_by_url(ask_origin(root)) or _spell_name(root.name) or "project"
        name = recall_project_name(root) or derived
    return replace(_make_project(data, root, name), file=file, chosen=chosen, derived_name=derived)


def find_root(start: Path) -> Path:
    """Return the nearest directory from `start` upward that has a monkey.yaml or a .git; else `start` itself."""
    start = start.absolute()
    return next((at for at in (start, *start.parents) if (at / PROJECT_FILE).exists() or (at / ".git").exists()), start)


def _read_data(root: Path, file: Path | None) -> dict[str, Any]:
    text = _read_text(root, file)
    if _is_blank(text):
        return {}
    read = document.parse_document(text, str(file or PROJECT_FILE))
    if not isinstance(read.data, dict):
        raise read.error(
            [Mistake((), f"expected a mapping, found {describe_value(read.data)}", "write: project: NAME")]
        )
    if mistakes := [*_find_unknown_keys(read.data), *_find_mistakes(read.data)]:
        raise read.error(mistakes)
    return read.data


def _read_text(root: Path, file: Path | None) -> str:
    """Return the text of the user's file, wherever it is; or of the repository's, which stays inside of it."""
    if file is not None:
        return document.read_document_text(file, str(file))
    return document.read_document_text(root / PROJECT_FILE, PROJECT_FILE, root)


def _is_blank(text: str) -> bool:
    """Say whether a text holds nothing but comments: everything in it has a default."""
    return all(not line.strip() or line.lstrip().startswith("#") or line.strip() == "---" for line in text.splitlines())


def _make_project(data: Mapping[str, Any], root: Path, name: str) -> Project:
    named = data.get("providers", _DEFAULT_PROVIDERS)
    providers = ProviderTable({name: provider.parse_provider(raw) for name, raw in named.items()})
    store = store_url.resolve_store_url(data.get("store"), root)
    return Project(
        root,
        name,
        store,
        providers,
        influx_settings.parse_influx_settings(data.get("metrics")),
        grafana_links.parse_grafana_url(data.get("metrics")),
        notify_channel.parse_notify_channels(data.get("notify")),
        parse_size(data.get("log_limit", 0)),
        data.get("git", {}).get("branch", ""),
        forge_settings.parse_forge_settings(data.get("forge")),
        preview_limits.parse_preview_limits(data.get("previews"), named),
    )


def _name_by_url(url: str) -> str:
    """Return the name of a repository by its URL, or its path: its last part."""
    path = url.rstrip("/").removesuffix("/.git").removesuffix(".git")
    return _spell_name(re.split(r"[/:]", path)[-1])


def _spell_name(text: str) -> str:
    """Turn a text into a name that keys can hold; "" where nothing of it can be one."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:63]
    return name if STORE_NAME_PATTERN.match(name) else ""


def _find_mistakes(data: Mapping[str, Any]) -> list[Mistake]:
    found = []
    if "project" in data and not (isinstance(data["project"], str) and STORE_NAME_PATTERN.match(data["project"])):
        hint = "use letters, digits, '.', '_' and '-', at most 63, first a letter or digit"
        found.append(Mistake(("project",), f"expected a name, found {describe_value(data['project'])}", hint))
    if "store" in data:
        found += store_url.find_store_mistakes(data["store"])
    if "providers" in data:
        found += provider.find_provider_mistakes(data["providers"])
    if "metrics" in data:
        found += influx_settings.find_metrics_mistakes(data["metrics"])
    if "notify" in data:
        found += notify_channel.find_notify_mistakes(data["notify"])
    if "log_limit" in data:
        found += _find_limit_mistakes(data["log_limit"])
    if "git" in data:
        found += _find_git_mistakes(data["git"])
    if "forge" in data:
        found += forge_settings.find_forge_mistakes(data["forge"])
    if "previews" in data:
        found += preview_limits.find_preview_mistakes(data["previews"], data.get("providers", _DEFAULT_PROVIDERS))
    return found


def _find_limit_mistakes(raw: Any) -> Iterator[Mistake]:
    path = ("log_limit",)
    try:
        if parse_size(raw) < _MIN_LOG_LIMIT:
            yield Mistake(path, f"expected 1MiB or more, found {describe_value(raw)}", "leave it out for whole logs")
    except MistakesError as exc:
        yield from (mistake.under(path) for mistake in exc.mistakes)


def _find_git_mistakes(data: Any) -> list[Mistake]:
    if not isinstance(data, dict):
        return [Mistake(("git",), f"expected a mapping, found {describe_value(data)}", "write: git: {branch: main}")]
    found = [
        Mistake(("git", key), f"unknown key {key!r}", suggest_word(key, ["branch"], "keys"), on_key=True)
        for key in data
        if key != "branch"
    ]
    branch = data.get("branch", "main")
    if not isinstance(branch, str) or not branch:
        found.append(Mistake(("git", "branch"), f"expected a branch, found {describe_value(branch)}", "write: main"))
    return found


def _find_unknown_keys(data: Mapping[str, Any]) -> list[Mistake]:
    found = []
    for key in data:
        if key in _PLANNED_KEYS:
            found.append(Mistake((key,), f"{key!r} is not there yet", _PLANNED_KEYS[key], on_key=True))
        elif key not in _KEYS:
            found.append(Mistake((key,), f"unknown key {key!r}", suggest_word(key, _KEYS, "keys"), on_key=True))
    return found
