"""Names that may be one on some disk, on one that tells them apart; `tests/folding` has one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.store.folded_names import check_names, find_twins
from monkey.store.memory import MemoryStore
from monkey.untrusted_files import UntrustedFile
from monkey_agent.uploads.job_outputs import resolve_twins
from tests.loops import Run


@pytest.mark.parametrize(
    ("paths", "pairs"),
    [
        (["a.pt", "b.pt", "a/b", "a/c"], []),
        (["Model.pt", "model.pt"], [("Model.pt", "model.pt")]),
        (["x/caf\u00e9", "x/cafe\u0301"], [("x/caf\u00e9", "x/cafe\u0301")]),
        (["stra\u00dfe", "STRASSE"], [("stra\u00dfe", "STRASSE")]),
        (["a\u200b", "a"], [("a\u200b", "a")]),
        (["Cats/1", "cats/2", "cats/3"], [("Cats", "cats"), ("Cats", "cats")]),
        (["data", "Data/1"], [("data", "Data")]),
        (["A/x", "A/X", "a/x"], [("A/x", "A/X"), ("A", "a")]),
    ],
)
def test_what_may_be_one_name(paths: list[str], pairs: list[tuple[str, str]]) -> None:
    assert list(find_twins(paths)) == pairs


def test_a_disk_that_tells_names_apart_refuses_none_and_keeps_nothing_of_the_look(tmp_path: Path) -> None:
    if Path(str(tmp_path).swapcase()).exists():
        pytest.skip("the disk of tests tells no upper from lower case")
    check_names(
        ["Model.pt", "model.pt", "caf\u00e9", "cafe\u0301", "Cats/1", "cats/1", "x" * 255, "X" * 255], str(tmp_path)
    )
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_to_is_no_matter_where_no_names_may_be_one(tmp_path: Path) -> None:
    check_names(["a", "b"], str(tmp_path / "missing"))
    with pytest.raises(FileNotFoundError):
        check_names(["a", "A"], str(tmp_path / "missing"))


def test_a_store_that_tells_names_apart_gets_each_output_under_its_own_name(run: Run) -> None:
    async def scenario() -> None:
        store, found = MemoryStore(), {name: UntrustedFile("/", name) for name in ("a", "A", "b/x", "B/x")}
        assert [why async for why in resolve_twins(store, "out/", found)] == []
        assert list(found) == ["a", "A", "b/x", "B/x"]
        assert await store.list("") == []

    run(scenario())


def test_names_of_different_directories_are_never_one(tmp_path: Path) -> None:
    check_names(["x/A", "x/a", "y/a", "y/A"], str(tmp_path))
    check_names(["y/aB", "y/ab", "z/AB", "z/aB"], str(tmp_path))
    assert list(tmp_path.iterdir()) == []
