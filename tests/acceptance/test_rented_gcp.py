"""Machines of Google's: the same story, by what its metadata, its bucket and its groups are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.acceptance.rented_site import STEPPER, RentedSite, ends, holding, lines
from tests.acceptance.shop import PROMPT, Shop, until
from tests.clouds.gcp.guard import TOKEN, make_token
from tests.hosts import Lab
from tests.rented.google import EMAIL, GROUP, PREFIX, PROJECT, Google, google

pytestmark = pytest.mark.slow

SECRET = "planted-in-a-secret-1729"


@pytest.fixture
def cloud(lab: Lab) -> Iterator[Google]:
    """Return an account."""
    with google(lab) as made:
        yield made


def test_machines_boot_give_back_and_leave(cloud: Google, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is taken back: another goes on from its last step, and goes when there is no more to do."""
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", TOKEN)
    shop.env["GOOGLE_BEARER_TOKEN"] = TOKEN
    cloud.secrets["told"] = SECRET
    about = {"cloud": "gcp", "gcp_project": PROJECT, "secrets": {"TOLD": "told"}, "idle_timeout": 10.0}
    site = RentedSite(shop, cloud.bucket.url("gs", PREFIX), cloud.lab.base / "shared/google", about)
    (shop.root / "stepper.py").write_text(STEPPER)
    text = f"command: [python3, stepper.py, '{site.shared}', '{{i}}']\noutputs: []\ncheckpoint_every: 1h\n"
    site.apply(f"{text}secrets: [TOLD]\n", jobs=1)
    script = site.user_data(GROUP)
    cloud.group(script, 2)
    steps = site.ledger.directory / "steps"
    first = until(lambda: [each for each in lines(steps) if each["step"] > 5], "a job is at work")[0]["machine"]
    machine = cloud.machines[first]
    (other,) = [each for each in cloud.running if each is not machine]
    until(lambda: (other.agent / "heard").exists(), "the other is heard as well")
    before = lines(steps)[-1]["step"]
    machine.metadata.said["preempted"] = "TRUE"
    until(lambda: [each for each in lines(steps) if each["machine"] == other.name], "another machine goes on")
    noted = lines(steps)
    last = [each for each in noted if each["machine"] == first][-1]
    begun = next(each for each in noted if each["machine"] == other.name)
    # It may have ended between saving a step and noting it.
    assert begun["what"] == "begun" and before <= begun["step"] <= last["step"] + 1, "what was saved at the end"
    assert begun["at"] - last["at"] < PROMPT, "nobody waited for a lease"
    assert begun["told"] == hashlib.sha256(SECRET.encode()).hexdigest()
    site.ended(machine, cloud.turn, "it is gone by itself")
    assert cloud.wanted == 2 and not cloud.asked, "its group has another one in its place"
    (site.ledger.directory / "enough").touch()
    site.ended(other, cloud.turn, "it has done all, and leaves")
    assert cloud.wanted == 1 and cloud.asked == [other.name]
    assert shop.states() == {"succeeded": 1}
    assert [end["reason"] for end in ends(site) if end["outcome"] == "released"] == ["spot notice"]
    assert not cloud.guard.refused, "machines ask for what they may not do"
    everything = site.everything()
    for secret in (SECRET, TOKEN, make_token(EMAIL)):
        assert secret not in script and not [key for key, data in everything.items() if secret.encode() in data]
        assert not holding(secret, machine.root, other.root, shop.root.parent)
