"""`provider:` of a spec: machines that it chooses, and the fleets that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.machines.fleet_name import find_provider_name
from monkey.spec.machines.provider_table import ProviderTable
from monkey.spec.project.provider import parse_provider
from monkey.spec.sweep.load import parse_spec
from monkey.spec.sweep.models import Spec

GIB = 1 << 30
AWS = {"type": "aws", "region": "eu-central-1", "instance_type": "m5.large"}
GCP = {"type": "gcp", "region": "europe-west4", "gcp_project": "my-project-1", "machine_type": "g2-standard-8"}
PRICED = {**AWS, "price": {"m5.large": 0.11, "m5.xlarge": 0.22}, "max_cost": 5, "max_instances": 3}
TABLE = ProviderTable(
    {
        "local": parse_provider({}),
        "cloud": parse_provider(AWS),
        "priced": parse_provider(PRICED),
        "flat": parse_provider({**AWS, "price": 0.11, "max_cost": 5}),
        "google": parse_provider(GCP),
        "lab": parse_provider({"type": "ssh", "hosts": ["h1"]}),
    }
)


def spec(provider: str) -> Spec:
    return parse_spec(f"command: a\nexpires: 1h\nprovider: {provider}\n", "specs/a.yaml", Path(), TABLE)


@pytest.mark.parametrize(
    ("provider", "fleets"),
    [
        ("cloud", ["cloud"]),
        ("{name: cloud}", ["cloud"]),
        ("{name: cloud, instance_type: m5.xlarge}", ["cloud..m5.xlarge"]),
        ("{disk: 200GiB, name: cloud}", ["cloud..disk-200GiB"]),
        ("{name: cloud, disk: 0.5TB}", ["cloud..disk-466GiB"]),
        ("[local, {name: cloud, instance_type: [c5.large, m5.large], disk: 9GiB}]",
         ["local", "cloud..c5.large..m5.large..disk-9GiB"]),
        ("{name: google, machine_type: n1-standard-4, zones: [europe-west4-b, europe-west4-a]}",
         ["google..n1-standard-4..zone-europe-west4-a..zone-europe-west4-b"]),
        # What the provider has itself is no choice.
        ("{name: cloud, instance_type: [m5.large], disk: 50GiB}", ["cloud"]),
        ("[cloud, {name: cloud, disk: 60GiB}]", ["cloud", "cloud..disk-60GiB"]),
        ("{name: priced, instance_type: m5.xlarge}", ["priced..m5.xlarge"]),
    ],
)  # fmt: skip
def test_a_choice_names_its_fleet_and_the_name_tells_the_choice(provider: str, fleets: list[str]) -> None:
    read = spec(provider)
    assert read.fleets == read.settings().providers == fleets
    assert all(fleet in TABLE and find_provider_name(fleet) in [*TABLE] for fleet in fleets)


def test_a_fleet_is_its_provider_but_for_what_was_chosen() -> None:
    own, found = TABLE["priced"].rented, TABLE["priced..m5.xlarge..disk-200GiB"].rented
    assert (found.types, found.disk, found.dearest) == (("m5.xlarge",), 200 * GIB, 0.22)
    assert (found.max_cost, found.max_instances, found.spot, found.region) == (5.0, 3, own.spot, own.region)
    assert TABLE["google..zone-europe-west4-b"].rented.zones == ("europe-west4-b",)
    assert TABLE["flat..m5.xlarge"].rented.dearest is None, "a price of one type is none of another"
    assert len(TABLE) == 6 and "priced..m5.xlarge" not in [*TABLE]


@pytest.mark.parametrize(
    "name",
    [
        "cloud..",
        "..m5.large",
        "nowhere..m5.large",
        "local..disk-50GiB",
        "lab..disk-50GiB",
        "cloud..disk-1GiB",
        "cloud..disk-99999999GiB",
        "cloud..disk-050GiB",
        "cloud..disk-50GiB..m5.large",
        "cloud..m5.large..m5.large",
        "cloud..zone-eu-central-1a",
        "cloud..M5.large",
        "cloud..m5.large\n",
        "cloud..m5/large",
        "google..a-1..b-2",
        "google..zone-europe-west1-a",
        "google..zone-europe-west4-b..zone-europe-west4-b",
        "cloud" + "..m5.large" * 10,
    ],
)
def test_no_other_name_is_a_fleet_s_whoever_wrote_it(name: str) -> None:
    assert name not in TABLE and TABLE.get(name) is None


@pytest.mark.parametrize(
    ("provider", "place", "message", "hint"),
    [
        ("{name: cloud, spot: true}", (3, 25), "a spec cannot set 'spot' of provider 'cloud', which is of type aws",
         "a spec may set instance_type and disk; set the others in monkey.yaml"),
        ("{name: cloud, max_instances: 99}", (3, 25), "a spec cannot set 'max_instances'", "a spec may set"),
        ("{name: cloud, instance_typ: m5.large}", (3, 25), "a spec cannot set 'instance_typ'", "'instance_type'"),
        ("{name: lab, disk: 50GiB}", (3, 23), "a spec cannot set 'disk' of provider 'lab', which is of type ssh",
         "make another provider in monkey.yaml"),
        ("{name: cloud, disk: 20}", (3, 31), "expected from 8GiB to 16TiB, found 20", "with its unit"),
        ("[local, {name: cloud, disk: big}]", (3, 39), "expected a size, found the text 'big'", "2GiB"),
        ("{name: cloud, instance_type: [m5.large, 3]}", (3, 51), "expected a type of instances, found 3", "g5.xlarge"),
        ("{name: google, machine_type: [a-1]}", (3, 40), "expected a type of machines, found a list", "g2-standard-8"),
        ("{name: google, zones: [europe-west1-a]}", (3, 34), "'europe-west1-a' is not in the region", "europe-west4-a"),
        ("{name: priced, instance_type: p5.48xlarge}", (3, 41), "max_cost of provider 'priced' cannot be held",
         "price: {p5.48xlarge: 1.01}; it has prices of m5.xlarge"),
        ("{name: flat, instance_type: m5.xlarge}", (3, 39), "nobody says what m5.xlarge costs", "price at flat"),
        ("[cloud, {name: cloud, disk: 50GiB}]", (3, 19), "provider 'cloud' is listed twice", "once"),
        ("{disk: 50GiB}", (3, 11), "expected the name of a provider, found none", "{name: cloud"),
        ("{name: [a]}", (3, 11), "expected a provider's name or a list of them, found a list", "write provider"),
        ("[]", (3, 11), "found an empty list", "write provider"),
        ("cloud..m5.xlarge", (3, 11), "unknown provider 'cloud..m5.xlarge'", "{name: cloud, disk"),
        ("kubernetes", (3, 11), "unknown provider 'kubernetes'", "`monkey init --provider kubernetes` adds one"),
        ("nowhere", (3, 11), "unknown provider 'nowhere'", "providers: cloud, flat, google, lab, local, priced"),
        ("{name: cluod, disk: 9GiB}", (3, 11), "unknown provider 'cluod'", "did you mean 'cloud'?"),
        (f"{{name: cloud, instance_type: [{', '.join(f'm5.{n}xlarge' for n in range(10))}]}}", (3, 11),
         "expected a fleet's name of 100 characters or fewer", "list fewer types"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place_and_what_to_do(provider: str, place: tuple[int, int], message: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(provider)
    [found] = caught.value.problems
    assert (found.line, found.column) == place
    assert message in found.message and hint in (found.hint or "")
