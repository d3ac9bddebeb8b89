"""monkey.yaml: defaults, what it may say, what is wrong with the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.project import Project, load_project
from monkey.spec.project.provider import Provider


def project(text: str, root: Path) -> Project:
    (root / "monkey.yaml").write_text(text)
    return load_project(root)


def test_without_a_file_everything_has_a_default(tmp_path: Path) -> None:
    root = tmp_path / "My Project!"
    root.mkdir()
    made = load_project(root)
    assert made == Project(root, "My-Project", str(root / ".monkey/store"), {"local": Provider()})
    assert made.providers["local"] == Provider(type="local", max_slots=None, idle_timeout=10)
    other = tmp_path / "日本"
    other.mkdir()
    assert load_project(other).name == "project"


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("https://forge.example/team/sweeps.git", "sweeps"),
        ("https://forge.example/team/sweeps/", "sweeps"),
        ("git@forge.example:team/my sweeps.git", "my-sweeps"),
        ("git@forge.example:sweeps", "sweeps"),
        ("/srv/git/sweeps/.git", "sweeps"),
        ("../sweeps.git/", "sweeps"),
        ("https://forge.example/team/日本.git", "here"),
        ("", "here"),
    ],
)
def test_without_a_name_it_has_that_of_its_repository(origin: str, name: str, tmp_path: Path) -> None:
    root = tmp_path / "here"
    root.mkdir()
    assert load_project(root, ask_origin={root: origin}.__getitem__).name == name
    (root / "monkey.yaml").write_text("project: said\n")
    assert load_project(root, ask_origin=lambda root: "never/asked").name == "said"


@pytest.mark.parametrize(
    ("memo", "name"),
    [
        ('{"project": "kept", "/store": "id"}', "kept"),
        ('{"project": "../up"}', "sweeps"),
        ('{"project": 3}', "sweeps"),
        ('["project"]', "sweeps"),
        ("{", "sweeps"),
    ],
)
def test_a_checkout_remembers_its_name(memo: str, name: str, tmp_path: Path) -> None:
    (tmp_path / ".monkey").mkdir()
    (tmp_path / ".monkey" / "stores.json").write_text(memo)
    made = load_project(tmp_path, ask_origin=lambda root: "https://forge.example/team/sweeps.git")
    assert (made.name, made.derived_name) == (name, "sweeps")
    (tmp_path / "monkey.yaml").write_text("project: said\n")
    made = load_project(tmp_path)
    assert (made.name, made.derived_name) == ("said", "")


def test_everything_that_it_may_say(tmp_path: Path) -> None:
    made = project(
        "project: digits\nstore: ../shared store\n"
        "providers: {here: {type: local, max_slots: 4, idle_timeout: 1m, cache_size: 2GiB}, b: {}, c: }\n",
        tmp_path,
    )
    assert made.name == "digits"
    assert made.store == str(tmp_path / "../shared store")
    assert made.providers == {"here": Provider("local", 4, 60, 2 << 30), "b": Provider(), "c": Provider()}
    assert project("store: s3://bucket/x", tmp_path).store == "s3://bucket/x"
    assert project("store: /data/x", tmp_path).store == "/data/x"


def test_a_store_with_options_is_one_string(tmp_path: Path) -> None:
    for text, store in {
        "{url: s3://b/x, region: eu-west-1, endpoint: 'http://host:9000'}": "s3://b/x?endpoint=http://host:9000&region=eu-west-1",
        "{url: 's3://b/x?region=eu-west-1', profile: 'a b&c'}": "s3://b/x?region=eu-west-1&profile=a%20b%26c",
        "{url: s3://b/x}": "s3://b/x",
        "{url: data}": str(tmp_path / "data"),
    }.items():
        assert project(f"store: {text}", tmp_path).store == store


@pytest.mark.parametrize("text", ["", "# nothing\n\n  # yet\n", "---\n"])
def test_a_blank_file_is_all_defaults(text: str, tmp_path: Path) -> None:
    assert project(text, tmp_path).providers == {"local": Provider()}


def test_it_is_a_file_of_the_project(tmp_path: Path) -> None:
    keys, root = tmp_path / "keys", tmp_path / "project"
    keys.write_text("# hunter2\n")
    root.mkdir()
    file = root / "monkey.yaml"
    file.symlink_to(keys)
    with pytest.raises(SpecError, match=r"monkey\.yaml:1:1: the file is not read: it is outside of the project"):
        load_project(root)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(SpecError, match="it is no regular file"):
        load_project(root)
    file.unlink()
    (root / "settings.yaml").write_text("project: here\n")
    file.symlink_to("settings.yaml")
    (tmp_path / "link").symlink_to(root)
    assert load_project(tmp_path / "link").name == "here"


def test_it_is_found_from_below(tmp_path: Path) -> None:
    below = tmp_path / "a/b"
    below.mkdir(parents=True)
    (tmp_path / "monkey.yaml").write_text("project: top\n")
    assert (load_project(below).root, load_project(below).name) == (tmp_path, "top")
    (tmp_path / "a/.git").mkdir()
    assert load_project(below).root == tmp_path / "a"
    (below / "monkey.yaml").write_text("project: low\n")
    assert load_project(below).name == "low"


@pytest.mark.parametrize(
    "text, column, message, hint",
    [
        ("projct: a", 1, "unknown key 'projct'", "did you mean 'project'?"),
        ("project: a/b", 10, "expected a name, found the text 'a/b'", "letters"),
        ("project: 3", 10, "expected a name, found 3", "letters"),
        ("store: 3", 8, "expected a path or a URL, found 3", ".monkey/store"),
        ("store: [a]", 8, "expected a path or a URL, found a list", "s3://bucket/prefix"),
        ("store: {region: x}", 8, "expected a mapping with 'url'", "s3://bucket"),
        ("store: {url: s3://b, regoin: x}", 22, "a store at s3:// has no option 'regoin'", "'region'"),
        ("store: {url: s3://b, region: 3}", 30, "expected text, found 3", "quotes"),
        ("store: {url: a, region: x}", 17, "a directory has no option 'region'", "no options"),
        ("notify: {}", 9, "expected a webhook, slack or forge, found none", "slack: SLACK_WEBHOOK"),
        ("providers: []", 12, "expected providers by name", "{local: {}}"),
        ("providers: {}", 12, "expected providers by name", "{local: {}}"),
        ("providers: {a b: {}}", 13, "'a b' cannot name a provider", "letters"),
        (f"providers: {{{'a' * 64}: {{}}}}", 13, f"{'a' * 64!r} cannot name a provider", "63 of them at most"),
        ("providers: {a..b: {}}", 13, "'a..b' cannot name a provider", "machines that specs choose"),
        ("providers: {a.: {}}", 13, "'a.' cannot name a provider", "'.' at its end"),
        ("providers: {a: 3}", 16, "expected a mapping, found 3", "{type: local}"),
        ("providers: {a: {type: azure}}", 23, "providers of type 'azure' are not there yet", "local"),
        ("providers: {a: {type: lokal}}", 23, "expected a provider's type", "type: local"),
        ("providers: {a: {type: [a]}}", 23, "expected a provider's type", "type: local"),
        ("providers: {a: {slots: 3}}", 17, "unknown key 'slots'", "'max_slots'"),
        ("providers: {a: {max_slots: 0}}", 28, "expected a whole number of 1 or more", "as fit"),
        ("providers: {a: {max_slots: true}}", 28, "expected a whole number of 1 or more", "as fit"),
        ("providers: {a: {idle_timeout: soon}}", 31, "expected a duration", "30m"),
        ("providers: {a: {cache_size: much}}", 29, "expected a size", "GiB"),
        ("providers: {a: {resources: 3}}", 28, "expected a mapping, found 3", "{tpu: 4}"),
        ("providers: {a: {resources: {tpu: x}}}", 34, "expected a whole number", "tpu: 1"),
        ("providers: {a: {resources: {cpu: 3}}}", 29, "unknown key 'cpu'", "cpus"),
        ("store: there:/tmp/q", 8, "expected a path or a URL", "ssh://there/tmp/q, or ./there:/tmp/q"),
        ("store: s3:/bucket/x", 8, "expected a path or a URL", "s3://bucket/x"),
        ("- a", 1, "expected a mapping, found a list", "project"),
        ("a: [", 5, "not valid YAML", ""),
    ],
)
def test_mistakes(text: str, column: int, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        project(text, tmp_path)
    (found,) = caught.value.problems
    assert message in found.message
    assert hint in (found.hint or "")
    assert (found.file, found.line, found.column) == ("monkey.yaml", 1, column)


def test_mistakes_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        project("store: 3\nproject: 3\nx: 3\n", tmp_path)
    assert [p.line for p in caught.value.problems] == [1, 2, 3]


def test_it_needs_no_pydantic() -> None:
    modules = "project.project command.command parameters.conditions job.job_id job.job_table job.recipe yaml.document"
    imports = "; ".join(f"import monkey.spec.{name}" for name in modules.split())
    code = f"import sys; {imports}; print(*{{'pydantic', 'ruamel', 'rich'}} & {{*sys.modules}})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip() == ""
