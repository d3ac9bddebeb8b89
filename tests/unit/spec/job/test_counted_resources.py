"""Resources that are only counted: what a spec asks for, what providers have, what none of them has."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.job.counted_resources import parse_counts, read_counts, spell_counts
from monkey.spec.job.recipe import JobResources, SweepSettings
from monkey.spec.project.provider import Provider
from monkey.spec.sweep.load import load_spec
from monkey.spec.yaml.mistakes import MistakesError

HAS = {"lab": Provider("ssh", resources=(("licence", 1), ("tpu", 4))), "local": Provider(resources=(("fpga", 2),))}


def load(resources: str, tmp_path: Path, provider: str = "lab") -> JobResources:
    """Read a spec whose jobs take these resources."""
    path = tmp_path / "s.yaml"
    path.write_text(f"name: s\ncommand: a\nprovider: {provider}\nresources: {resources}\n")
    return load_spec(path, tmp_path, HAS).settings().resources


def test_a_job_takes_what_it_names(tmp_path: Path) -> None:
    found = load("{cpus: 2, tpu: 4, licence: 1, fpga: 0}", tmp_path)
    assert found == JobResources(2, counted=(("licence", 1), ("tpu", 4)))
    assert found.amounts == {"cpus": 2000, "memory": 0, "licence": 1, "tpu": 4}
    settings = SweepSettings(resources=found)
    assert SweepSettings.from_json(settings.to_json()) == settings
    assert settings.to_json()["resources"]["counted"] == {"licence": 1, "tpu": 4}
    assert "counted" not in SweepSettings().to_json()["resources"], "an older agent reads that"


@pytest.mark.parametrize(
    ("resources", "provider", "column", "message", "hint"),
    [
        (
            "{tpu: 5}",
            "lab",
            18,
            "5 tpu, and no machine of lab has more than 4",
            "resources: {tpu: 5} at lab",
        ),
        ("{fpga: 1}", "lab", 19, "a job asks for 1 fpga, and no machine of lab has any", "in monkey.yaml"),
        ("{lisence: 1}", "lab", 22, "and no machine of lab has any", "did you mean 'licence'?"),
        ("{cpsu: 4}", "lab", 19, "and no machine of lab has any", "did you mean 'cpus'?"),
        ("{tpu: 1, fpga: 1}", "[lab, local]", 12, "no machine of one provider has all of that", ""),
    ],
)
def test_what_no_machine_has_is_refused(
    resources: str, provider: str, column: int, message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        load(resources, tmp_path, provider)
    (found,) = caught.value.problems
    assert message in found.message and hint in (found.hint or "")
    assert (found.line, found.column) == (4, column)


def test_one_provider_that_has_it_is_enough(tmp_path: Path) -> None:
    assert load("{fpga: 2}", tmp_path, "[lab, local]").counted == (("fpga", 2),)


def test_they_are_one_word_of_a_command_line() -> None:
    counted = parse_counts({"tpu": 4, "licence": 2, "none": 0})
    assert spell_counts(counted) == "licence=2,tpu=4" and read_counts(spell_counts(counted)) == counted
    assert read_counts("") == ()
    for wrong in ("tpu", "tpu=x", "tpu=-1", "=1", "cpus=1"):
        with pytest.raises(MistakesError):
            read_counts(wrong)
