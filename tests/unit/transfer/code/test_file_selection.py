"""Which files are code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monkey.errors import PlanError
from monkey.transfer.code import file_selection
from monkey.transfer.code.code_snapshot import read_code
from tests.unit.transfer.conftest import Git, write


def select_files(root: Path, *arguments: Any, **options: Any) -> list[str]:
    """Return the paths of the selected files."""
    return file_selection.select_files(root, *arguments, **options).paths


def test_git_says_what_there_is(repository: Path) -> None:
    write(repository, new_py="untracked", lib__ignored_py="no")
    (repository / "data" / "x.csv").unlink()
    assert select_files(repository, (), {"specs/digits.yaml"}) == ["data/x.csv", "lib/model.py", "new.py", "train.py"]


def test_a_directory_below_the_work_tree_is_a_root_of_its_own(repository: Path) -> None:
    assert select_files(repository / "lib", ()) == ["model.py"]


def test_included_is_what_is_named_and_nothing_else(repository: Path) -> None:
    assert select_files(repository, ["**/*.py"]) == ["lib/model.py", "train.py"]
    assert select_files(repository, ["lib", "*.md", "specs/*.yaml"]) == [
        "README.md",
        "lib/model.py",
        "specs/digits.yaml",
    ]


@pytest.mark.parametrize("pattern", ["*.pyx", "ignored.txt", "nothing/**"])
def test_a_pattern_that_names_nothing_is_a_mistake(repository: Path, pattern: str) -> None:
    with pytest.raises(PlanError, match=r"code\.include") as caught:
        select_files(repository, ["train.py", pattern])
    assert pattern in caught.value.message


@pytest.mark.parametrize("pattern", ["../*.py", "/etc/passwd", ""])
def test_a_pattern_that_leads_out_is_a_mistake(repository: Path, pattern: str) -> None:
    with pytest.raises(PlanError, match="expected a pattern"):
        select_files(repository, [pattern])


def test_no_directory_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="expected a directory of code"):
        select_files(tmp_path / "nothing", ())


def test_our_own_store_is_never_code(repository: Path) -> None:
    write(repository, **{".monkey__store__format_x": "x"})
    expected = select_files(repository, ())
    assert not [path for path in expected if ".monkey" in path]
    with pytest.raises(PlanError):
        select_files(repository, [".monkey/**"])


@pytest.mark.parametrize("name", [".env", "lib/.env.local", ".aws/credentials", "lib/key.pem"])
def test_what_keeps_keys_is_no_code_unless_it_is_tracked_or_named(repository: Path, git: Git, name: str) -> None:
    before = select_files(repository, ())
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text("TOKEN=s3cret")
    assert select_files(repository, ()) == before
    assert select_files(repository, [name]) == [name]
    git(repository, "add", "--force", name)
    assert select_files(repository, ()) == sorted([*before, name])


def test_without_git_what_dvc_keeps_is_never_code(tmp_path: Path) -> None:
    write(tmp_path, train_py="", data_dvc="", _dvc__config_x="", _dvc__tmp__lock_x="", _dvc__cache__files_x="")
    (tmp_path / "_dvc").rename(tmp_path / ".dvc")
    (tmp_path / ".dvc" / "config.local").write_text("password = s3cret")
    assert not [path for path in select_files(tmp_path, ()) if "lock" in path or "cache" in path or "local" in path]
    assert any(path.startswith(".dvc/config") for path in select_files(tmp_path, ()))


def test_without_git_all_but_litter(tmp_path: Path) -> None:
    write(tmp_path, train_py="", a__b_py="", __pycache____c_pyc="", a__node_modules__m_js="", env__lib__x_py="")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / ".mypy_cache").mkdir()
    (tmp_path / ".mypy_cache" / "x").write_text("")
    assert select_files(tmp_path, ()) == ["a/b.py", "train.py"]


LITTER = ("__pycache__/c.pyc", ".ipynb_checkpoints/n-checkpoint.ipynb", "lib/.DS_Store", "train.py~", "lib/x.pyc")


@pytest.mark.parametrize("include", [[], ["**"], ["lib", "*"]])
def test_litter_that_git_sees_is_no_code_unless_it_is_tracked(repository: Path, git: Git, include: list[str]) -> None:
    before = select_files(repository, include)
    for name in (*LITTER, "env/lib/site.py", "env/pyvenv.cfg"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("litter")
    assert select_files(repository, include) == before
    git(repository, "add", *LITTER)
    assert set(select_files(repository, ["**"])) >= set(LITTER)


def test_logs_are_no_code_unless_tracked_or_named(repository: Path, git: Git) -> None:
    before = select_files(repository, ())
    for name in ("apply.log", "nohup.out", "lib/slurm-7.out"):
        (repository / name).write_text("log")
    assert select_files(repository, ()) == before
    assert select_files(repository, ["*.log"]) == ["apply.log"]
    git(repository, "add", "apply.log")
    assert select_files(repository, ()) == sorted([*before, "apply.log"])


def test_submodules_belong_to_it(repository: Path, git: Git, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, inner_py="inner", ignored_py="i")
    (other / ".gitignore").write_text("ignored*\n")
    git(other, "init", "-q")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "o")
    git(repository, "submodule", "--quiet", "add", str(other), "vendored")
    write(repository, vendored__new_py="new")
    assert [path for path in select_files(repository, ()) if "/" in path and path.startswith("v")] == [
        "vendored/inner.py",
        "vendored/new.py",
    ]
    git(repository, "commit", "-q", "-m", "s")
    git(repository, "submodule", "--quiet", "deinit", "-f", "vendored")
    with pytest.raises(PlanError, match=r"'vendored' .* is not checked out") as caught:
        read_code(repository)
    assert "submodule update" in (caught.value.hint or "")
    assert select_files(repository, ["train.py"]) == ["train.py"]


def repository_at(path: Path, git: Git, **files: str) -> Path:
    """Make a repository there, with these files committed."""
    path.mkdir(parents=True)
    write(path, **files)
    git(path, "init", "-q")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "theirs")
    return path


def test_a_submodule_of_a_submodule_is_one(repository: Path, git: Git, tmp_path: Path) -> None:
    inner, other = repository_at(tmp_path / "inner", git, i_py=""), repository_at(tmp_path / "other", git, o_py="")
    git(other, "submodule", "--quiet", "add", str(inner), "inner")
    git(other, "commit", "-q", "-m", "s")
    git(repository, "submodule", "--quiet", "add", str(other), "vendored")
    git(repository, "submodule", "--quiet", "update", "--init", "--recursive")
    assert {"vendored/o.py", "vendored/inner/i.py"} <= set(select_files(repository, ()))
    assert select_files(repository / "vendored" / "inner", (), project=repository) == ["i.py"]


def test_a_repository_that_is_no_submodule_is_named_where_its_files_would_be_code(repository: Path, git: Git) -> None:
    repository_at(repository / "lib" / "nested", git, n_py="n", sub__m_py="m")
    repository_at(repository / "notes", git, README_md="no code")
    found = select_files(repository, ())
    assert "lib/nested/" in found and not [path for path in found if path.startswith(("lib/nested/n", "notes"))]
    assert select_files(repository / "lib", ["**/*.py"]) == ["model.py", "nested/"]
    assert select_files(repository, ["train.py"]) == ["train.py"], "none of its files is missed"
    taken = read_code(repository)
    assert taken.repositories == ("lib/nested",) and "lib/model.py" in taken.files
    assert not read_code(repository, without=["lib/nested"]).repositories, "a dataset is no code anyway"
    with pytest.raises(PlanError, match=r"code\.include 'lib/nested/\*'") as caught:
        select_files(repository, ["lib/nested/*", "train.py"])
    assert "no submodule" in (caught.value.hint or "")
    git(repository, "add", "lib/nested")  # makes a submodule of it, as far as the index knows
    assert "lib/nested/n.py" in select_files(repository, ())


def test_code_in_a_repository_that_is_no_submodule_is_a_mistake(repository: Path, git: Git, tmp_path: Path) -> None:
    nested = repository_at(repository / "nested", git, sub__m_py="m")
    (repository / "link").symlink_to("nested/sub")
    for root in (nested, nested / "sub", repository / "link"):
        with pytest.raises(PlanError, match="is a repository of its own") as caught:
            read_code(root, project=repository)
        assert str(nested) in caught.value.message and "submodule add" in (caught.value.hint or "")
    assert select_files(nested, (), project=nested) == ["sub/m.py"], "a project may lie in another's directory"
    alone = repository_at(tmp_path / "no-git" / "code", git, a_py="")
    assert select_files(alone, (), project=alone.parent) == ["a.py"]


def test_a_directory_that_looks_like_a_bare_repository_is_listed(repository: Path, git: Git) -> None:
    git(repository, "init", "-q", "--bare", "lib/bare")
    write(repository, lib__bare__m_py="m", lib__bare__deep__d_py="d")
    assert {"m.py", "deep/d.py", "HEAD"} <= set(select_files(repository / "lib" / "bare", (), project=repository))
    assert select_files(repository / "lib" / "bare" / "deep", (), project=repository) == ["d.py"]


def test_a_root_with_an_odd_name_is_no_pattern(repository: Path) -> None:
    for name in ("x[ab]", "xa", ":(top)", "-C"):
        (repository / name).mkdir()
        (repository / name / f"{name}.py").touch()
        assert select_files(repository / name, ()) == [f"{name}.py"]


def test_a_root_that_git_ignores_is_walked(repository: Path) -> None:
    write(repository, ignored__a_py="a")
    assert select_files(repository / "ignored", ()) == ["a.py"]


def test_a_hooks_variables_do_not_mislead(
    repository: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "hooked"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert "train.py" in select_files(repository, ())


def test_without_a_git_to_ask_nothing_is_guessed(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlanError, match="no git here") as caught:
        select_files(repository, ())
    assert caught.value.hint == "install git"


def test_what_git_says_when_it_fails_is_passed_on(repository: Path) -> None:
    (repository / ".git" / "index").write_bytes(b"garbage")
    with pytest.raises(PlanError, match="git cannot read the work tree"):
        select_files(repository, ())


def test_odd_names_are_listed(repository: Path, git: Git) -> None:
    for name in ("with space.py", "quote'\".py", "größe.py", "new\nline.py", "-rf"):
        (repository / name).write_text("x")
    found = select_files(repository, ())
    assert {"with space.py", "quote'\".py", "größe.py", "new\nline.py", "-rf"} <= set(found)
