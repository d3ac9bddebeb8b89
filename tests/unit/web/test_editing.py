"""The form's part of the server: texts, fields and files. Only what was opened is written, and only into specs/."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from monkey.errors import MonkeyError, NotFound, SpecError
from monkey.spec.project.project import load_project
from monkey.web.editing.form_fields import apply_edit, serialize_form
from monkey.web.editing.spec_folder import MAX_TEXT_BYTES, SpecConflict, SpecFolder
from tests.unit.apply.small_project import SPEC, write_project
from tests.unit.web.pages import serving

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


def open_folder(root: Path, spec: str = SPEC) -> SpecFolder:
    write_project(root, spec)
    return SpecFolder(load_project(root))


def test_a_file_is_saved_if_it_is_what_was_opened(tmp_path: Path) -> None:
    folder, path = open_folder(tmp_path), tmp_path / "specs" / "small.yaml"
    opened = folder.open_spec("small.yaml")
    mine = opened.text.replace("[1, 2, 3]", "[4]")
    saved = folder.save_spec("small.yaml", mine, opened.base)
    assert path.read_text() == mine
    theirs = path.read_text() + "# by an editor\n"
    path.write_text(theirs)
    with pytest.raises(SpecConflict, match="was changed meanwhile") as found:
        folder.save_spec("small.yaml", opened.text, saved.base)
    assert found.value.found.text == theirs == path.read_text()
    folder.save_spec("small.yaml", opened.text, found.value.found.base)  # knowing theirs
    assert path.read_text() == opened.text
    path.unlink()
    with pytest.raises(SpecConflict, match="was removed"):
        folder.save_spec("small.yaml", mine, opened.base)
    assert not list((tmp_path / "specs").iterdir())  # nothing half-written is left


def test_a_text_is_edited_as_it_is_and_only_shown_without_credentials(tmp_path: Path) -> None:
    token = f"hf_{'a' * 34}"
    text = f"{SPEC}env: {{HUB: {token}}}\n"

    async def main() -> None:
        async with serving(tmp_path, text) as page:
            opened = await page.get("specs/small.yaml")
            assert opened["text"] == text
            body = {"text": text, "base": opened["base"]}
            assert (await page.post("specs/small.yaml/form", **body))[1]["text"] == text
            await page.pen.begin(page.jobs[0])
            assert token not in str(await page.get(f"job/small/{page.jobs[0]}"))

    asyncio.run(main())


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    text = SPEC.replace("small", "fresh")
    folder.save_spec("fresh.yaml", text, "")
    with pytest.raises(SpecConflict, match="exists"):
        folder.save_spec("fresh.yaml", text + "# more\n", "")
    assert (tmp_path / "specs" / "fresh.yaml").read_text() == text
    assert folder.list_specs() == [{"file": "fresh.yaml", "name": "fresh"}, {"file": "small.yaml", "name": "small"}]


def test_line_ends_stay_as_they_are_in_the_file(tmp_path: Path) -> None:
    folder, path = open_folder(tmp_path), tmp_path / "specs" / "small.yaml"
    path.write_bytes(SPEC.replace("\n", "\r\n").encode())
    opened = folder.open_spec("small.yaml")
    assert opened.text == SPEC
    folder.save_spec("small.yaml", SPEC.replace("3]", "4]"), opened.base)
    assert path.read_bytes() == SPEC.replace("3]", "4]").replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    "file",
    [
        *("../monkey.yaml", "../../etc/passwd", "/etc/passwd", "a/b.yaml", "..", ".hidden.yaml", "train.py", "x.json"),
        *("small.yaml\0", "small.yaml\n", "", "x" * 200 + ".yaml", "..yaml", "a\\b.yaml", "é.yaml", "-x.yaml"),
    ],
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, file: str) -> None:
    folder = open_folder(tmp_path)
    for ask in (
        folder.open_spec,
        lambda name: folder.check_spec(name, SPEC),
        lambda name: folder.save_spec(name, SPEC, ""),
    ):
        with pytest.raises(NotFound):
            ask(file)


def test_nothing_is_read_or_written_through_a_link(tmp_path: Path) -> None:
    folder, specs = open_folder(tmp_path / "project"), tmp_path / "project" / "specs"
    outside = tmp_path / "outside.yaml"
    outside.write_text(SPEC)
    (specs / "link.yaml").symlink_to(outside)
    (specs / "code.yaml").symlink_to("../train.py")
    (specs / "gone.yaml").symlink_to(tmp_path / "nothing")
    for file in ("link.yaml", "code.yaml", "gone.yaml"):
        with pytest.raises(NotFound, match="link"):
            folder.save_spec(file, SPEC, "")
        with pytest.raises(NotFound, match="link"):
            folder.open_spec(file)
    assert [one["file"] for one in folder.list_specs()] == ["small.yaml"]
    specs.rename(tmp_path / "moved")
    specs.symlink_to(tmp_path / "moved")
    with pytest.raises(NotFound, match="link"):
        folder.save_spec("small.yaml", SPEC, "")
    assert outside.read_text() == SPEC and not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SPEC.replace("{lr}", "{rate}"), "rate"),
        (SPEC.replace("small", "other"), "two specs are named 'other'"),
        (BOMB, "at most 500,000 values"),
        ("a: " + "[" * 3000, "levels of nesting"),
        ("x" * MAX_TEXT_BYTES + "y", "at most 256 KiB"),
        ("- 1\n", "expected a mapping"),
        ("a: !!python/object:os.system x\n", "tags"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_not_saved(tmp_path: Path, text: str, said: str) -> None:
    folder = open_folder(tmp_path)
    (tmp_path / "specs" / "other.yaml").write_text(SPEC.replace("small", "other"))
    base = folder.open_spec("small.yaml").base
    with pytest.raises(SpecError) as found:
        folder.save_spec("small.yaml", text, base)
    problem = found.value.problems[0]
    assert said in problem.message and problem.file == "specs/small.yaml" and problem.line >= 1
    assert folder.open_spec("small.yaml").text == SPEC


def look_at_files(root: Path) -> dict[Path, int]:
    """Return the files of a project and of its store, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def find_field(form: Any, label: str) -> Any:
    return next(one for one in form["fields"] if one["label"] == label)


def test_the_form_shows_what_the_text_says() -> None:
    text = """\
name: s
command: [python3, t.py, "{lr}"]
parameters:
  lr: [0.1, 1e-3]
  seed: {range: [0, 5]}
  width: {values: [1, 2], when: lr < 1}
  rate: {min: 0.1, max: 1, distribution: uniform}
  depth: 3
  group: {parameters: {a: [1]}}
provider: [local, lab]
resources: {cpus: 2}
"""
    form = serialize_form(text, ["local", "lab"])
    assert form is not None
    assert find_field(form, "Command")["kind"] == "yaml"
    assert find_field(form, "Command")["value"] == 'python3, t.py, "{lr}"'.join("[]")
    assert find_field(form, "CPUs of a job")["value"] == "2"
    assert find_field(form, "Goal")["value"] == "" and find_field(form, "Provider")["kind"] == "yaml"
    shown = {one["name"]: (one["form"], one["text"], one["more"]) for one in form["parameters"]}
    assert shown["lr"] == ("values", "0.1, 0.001", "") and shown["seed"] == ("range", "0, 5", "")
    assert shown["width"] == ("values", "1, 2", 'when: "lr < 1"') and shown["depth"] == ("value", "3", "")
    assert shown["rate"][0] == "between" and shown["group"][0] == "other"
    assert serialize_form("a: [", ()) is None and serialize_form("- 1\n", ()) is None


def test_a_field_changes_its_value_alone() -> None:
    text = "# mine\n" + SPEC
    assert apply_edit(text, {"path": ["parameters", "lr"], "yaml": "[1e-4,  2]"}) == text.replace(
        "[1, 2, 3]", "[1e-4,  2]"
    )
    added = apply_edit(text, {"path": ["parameters", "seed"], "yaml": "{range: [0, 3]}"})
    assert added == text.replace("3]\n", "3]\n  seed: {range: [0, 3]}\n")
    assert "timeout: 2h\n" in apply_edit(text, {"path": ["timeout"], "text": "2h"})
    renamed = apply_edit(text, {"path": ["parameters", "lr"], "name": "rate"})
    assert renamed == text.replace("  lr: [", "  rate: [")
    assert "metric" not in apply_edit(text, {"path": ["metric", "name"]})


@pytest.mark.parametrize(
    "edit",
    [
        *({}, {"path": []}, {"path": [1]}, {"path": "name"}, {"path": ["nothing"]}),
        *(
            {"path": ["name"], "yaml": "a\nevil: 1"},
            {"path": ["name"], "yaml": "[1"},
            {"path": ["name"], "yaml": "1], x: [2"},
        ),
        {"path": ["parameters", "lr"], "name": "lr"},
    ],
)
def test_a_change_that_is_none_is_refused(edit: dict[str, Any]) -> None:
    with pytest.raises(MonkeyError):
        apply_edit(SPEC, edit)


def test_gets_change_nothing_and_posts_say_what_is_wrong(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as page:
            before = look_at_files(tmp_path)
            assert (await page.get("specs"))["files"] == [{"file": "small.yaml", "name": "small"}]
            opened = await page.get("specs/small.yaml")
            assert opened["text"] == SPEC and not opened["problems"] and opened["form"]["parameters"][0]["name"] == "lr"
            for path in ("specs/none.yaml", "specs/..%2fmonkey.yaml", "specs/%2fetc%2fpasswd", "applies/x"):
                assert (await page.ask("GET", f"api/{path}"))[0] == 404, path
            edit = {"path": ["parameters", "lr"], "yaml": "[7]"}
            _, changed = await page.post("specs/small.yaml/form", text=SPEC, edit=edit)
            assert changed["text"] == SPEC.replace("[1, 2, 3]", "[7]") and not changed["problems"]
            _, wrong = await page.post("specs/small.yaml/form", text=SPEC.replace("{lr}", "{x}"))
            assert wrong["problems"][0]["line"] == 2
            assert (await page.post("specs/small.yaml/form", text=SPEC, edit={"path": ["nothing"]}))[0] == 422
            assert before == look_at_files(tmp_path)
            status, conflict = await page.post("specs/small.yaml/save", text=SPEC, base="0")
            assert status == 409 and conflict["found"] == {"text": SPEC, "base": opened["base"]}
            assert (await page.post("specs/..%2fx.yaml/save", text=SPEC, base=""))[0] == 404

    asyncio.run(main())


def test_behind_a_proxy_and_for_strangers_there_is_no_form(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, known=False) as page:
            for order in ("form", "plan", "save", "apply"):
                assert (await page.post(f"specs/small.yaml/{order}", text=SPEC))[0] == 401
            for path in ("specs", "specs/small.yaml", "applies/x"):
                assert (await page.ask("GET", f"api/{path}"))[0] == 401
            await page.log_in()
            assert (await page.ask("POST", "api/specs/small.yaml/save", headers={"Origin": "http://evil"}))[0] == 403
            page.guard.base_url = "https://lab.example"
            for order in ("form", "plan", "save", "apply"):
                assert (await page.post(f"specs/small.yaml/{order}", text=SPEC))[0] == 403
            for path in ("specs", "specs/small.yaml", "applies/x"):
                assert (await page.ask("GET", f"api/{path}"))[0] == 403

    asyncio.run(main())
