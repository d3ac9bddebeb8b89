"""What the documentation promises: links that lead somewhere, commands that exist, specs that are valid."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from monkey import errors
from monkey.cli.help import VERBS
from monkey.spec.command.command import compile_command
from monkey.spec.project.project import load_project
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.json_schema import build_spec_schema
from monkey.spec.sweep.load import load_spec
from monkey.spec.sweep.models import Spec

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/**/*.md")]
    if not {"site", "node_modules"} & set(path.relative_to(ROOT).parts)
)
VERB = {verb for verbs in VERBS.values() for verb in verbs}

REFRESH = "import sys, usage; sys.stdout.write(usage.refreshed(sys.stdin.read()))"
KEEP = "import sys, usage; sys.stdout.write(usage.BLOCK.sub('', sys.stdin.read()))"
FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (language, the rest of the opening line, text) of every fenced block."""
    for indent, language, rest, text in FENCE.findall(path.read_text()):
        yield language, rest.strip(), "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))


def find_open_fences(text: str) -> list[int]:
    """Return the lines of fences that are not closed: another with a language follows, or the page ends."""
    lost, opened = [], 0
    for at, line in enumerate(text.splitlines(), 1):
        fence = re.match(r" *```(.*)", line)
        if fence and fence[1] and opened:
            lost.append(opened)
        if fence:
            opened = 0 if opened and not fence[1] else at
    return lost + ([opened] if opened else [])


def prose(path: Path) -> str:
    """Return the page without its fenced blocks."""
    return FENCE.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """Return the anchors of the page's headings, as both the site and code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s+", "-", heading) for heading in plain}


def quick_start() -> list[str]:
    """Return the README's one-line commands, in order."""
    section = README.read_text().split("\n## Quick start\n")[1].split("\n## ")[0]
    return [text.strip() for _, _, _, text in FENCE.findall(section)]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_fences_are_closed(page: Path) -> None:
    assert not find_open_fences(page.read_text()), "lines of fences that nothing closes, or that close nothing"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_command_at_a_prompt_stands_in_a_fence(page: Path) -> None:
    """A pair of fences that is lost is missing nowhere else."""
    assert [line for line in prose(page).splitlines() if line.startswith("$ ")] == []


def test_a_fence_that_is_lost_is_found_wherever_it_was() -> None:
    lines = (ROOT / "docs/commands.md").read_text().splitlines()
    fences = [at for at, line in enumerate(lines) if line.startswith("```")]
    assert fences
    for at in fences:
        assert find_open_fences("\n".join([*lines[:at], *lines[at + 1 :]])), f"line {at + 1}"


def test_usage_leaves_a_block_without_an_end_as_it_is() -> None:
    """A block of which the last fence was lost took the next verb's heading with it."""
    lost = "```text\nUsage: monkey info [OPTIONS]\n\n## monkey logs\n\n"
    text = f"{lost}```text\nUsage: monkey logs [OPTIONS]\n```\n"
    done = subprocess.run([sys.executable, "-c", KEEP], cwd=ROOT / "docs", input=text, capture_output=True, text=True)
    assert done.stdout == f"{lost}\n", done.stderr


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith(("https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert there.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(there), target


def test_quick_start_begins_with_exactly_two_commands_of_one_line() -> None:
    commands = quick_start()
    assert len(commands) == 2
    assert all("\n" not in command and not command.startswith("$") for command in commands)
    run, test = commands
    assert run.endswith("monkey results digits --group-by lr,hidden")
    assert test.endswith("invoke test")


def test_ci_runs_the_readme_s_second_command_last() -> None:
    lines = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[-1] == quick_start()[1]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_commands_in_the_docs_exist(page: Path) -> None:
    shell = [text for language, _, text in blocks(page) if language in ("console", "bash", "sh")]
    inline = re.findall(r"`([^`\n]+)`", prose(page))
    for text in [*shell, *inline]:
        for verb in re.findall(r"(?:^\$ |^|\| |&& )(?:\.venv/bin/)?monkey ([a-z]+)\b", text, re.MULTILINE):
            assert verb in VERB, text


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project that `monkey init` makes."""
    root = tmp_path_factory.mktemp("fresh")
    done = subprocess.run([sys.executable, "-m", "monkey.cli.main", "init", root], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_block_with_a_file_s_name_is_that_file(page: Path, fresh: Path) -> None:
    """Ours, or one that `monkey init` writes: whoever pastes it gets what the text speaks of."""
    for _, rest, text in blocks(page):
        if title := re.search(r'title="([^"]+)"', rest):
            held = [(root / title[1]).read_text() for root in (ROOT, fresh) if (root / title[1]).is_file()]
            assert text in held, title[1]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_specs_in_the_docs_run_where_they_are_pasted(page: Path, fresh: Path, tmp_path: Path) -> None:
    """Whole ones are known by their first field; they run in the project that `monkey init` makes."""
    for language, rest, text in blocks(page):
        if language != "yaml" or rest:
            continue
        if text.startswith("project:"):
            (tmp_path / "monkey.yaml").write_text(text)
            assert load_project(tmp_path).name
        if text.startswith("name:"):
            path = fresh / "specs" / "pasted.yaml"
            path.write_text(text)
            first_job_runs(load_spec(path, fresh), fresh)


def first_job_runs(spec: Spec, root: Path) -> None:
    table = expand_spec(spec)[0]
    rendered = compile_command(spec.command, table.columns).render(table.parameters(0))
    done = subprocess.run(rendered.argv, cwd=root, env={**os.environ, **rendered.env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for pattern in spec.outputs or []:
        assert list(root.glob(pattern)), pattern


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_python_in_the_docs_compiles(page: Path) -> None:
    for language, _, text in blocks(page):
        if language == "python":
            compile(text, relative(page), "exec")


def test_every_verb_is_described() -> None:
    assert set(re.findall(r"^## monkey ([a-z]+)", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)) == VERB


@pytest.mark.slow
def test_usage_in_the_docs_is_what_the_commands_print() -> None:
    text = (ROOT / "docs/commands.md").read_text()
    done = subprocess.run(
        [sys.executable, "-c", REFRESH], cwd=ROOT / "docs", input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == text, "run: python docs/usage.py"


@pytest.mark.slow
def test_the_picture_of_the_architecture_is_drawn_from_the_code() -> None:
    code = "import sys, architecture; sys.stdout.write(architecture.draw_picture())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (ROOT / "docs/architecture.svg").read_text(), "run: python docs/architecture.py"


def test_every_field_of_a_spec_is_described() -> None:
    described = set(re.findall(r"^### ([a-z_]+)$", (ROOT / "docs/spec.md").read_text(), re.MULTILINE))
    assert described >= set(Spec.model_fields)


def test_every_error_is_in_troubleshooting() -> None:
    tree = [line.split()[1] for line in (errors.__doc__ or "").splitlines() if "──" in line]
    text = (ROOT / "docs/troubleshooting.md").read_text()
    for name in {line.lstrip("│├└─ ") for line in tree} & set(vars(errors)):
        assert f"`{name}`" in text


def test_site_lists_every_page() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text()
    missing = [
        page
        for page in ROOT.glob("docs/**/*.md")
        if f" {page.relative_to(ROOT / 'docs').as_posix()}\n" not in navigation
    ]
    assert not missing


def test_schema_beside_our_specs_is_what_monkey_prints() -> None:
    assert json.loads((ROOT / "specs/schema.json").read_text()) == build_spec_schema()


@pytest.mark.parametrize("path", sorted(ROOT.glob("specs/*.yaml")), ids=relative)
def test_our_specs_are_valid(path: Path) -> None:
    spec = load_spec(path, ROOT)
    assert spec.name == path.stem
