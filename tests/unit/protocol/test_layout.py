"""Keys: spelled so that the order of a listing is the order in which things were written."""

from __future__ import annotations

import pytest

from monkey.protocol.layout import Keys, spell_segment_key


def test_segments_of_a_log_are_listed_in_the_order_in_which_the_job_wrote() -> None:
    log = f"{Keys('p').out('j' * 16, 3)}log/"
    assert spell_segment_key(log, 0) == f"projects/p/jobs/{'j' * 16}/out/00000003/log/000000"
    keys = [spell_segment_key(log, i) for i in (0, 1, 9, 10, 99, 100, 99_999, 100_000, 999_999)]
    assert sorted(keys) == keys
    assert all(key.startswith(log) for key in keys)


@pytest.mark.parametrize("name", ["", "a/b", "..", ".a", "-a", "ä", "a b", "a\n", "x" * 101])
def test_a_name_that_could_lead_elsewhere_makes_no_keys(name: str) -> None:
    with pytest.raises(ValueError, match="a project is named with letters"):
        Keys(name)
