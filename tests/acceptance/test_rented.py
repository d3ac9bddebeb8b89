"""Machines of AWS from a plan to nothing left: by the real CLI and the real Pulumi, booted by what these made."""

from __future__ import annotations

import gzip
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from monkey.fleet.cloud.machine_paths import BYE_FILES
from monkey_stacks.bundle.bundle import pack_files
from tests.acceptance.renting import BUCKET, Renting, digest, slowness
from tests.acceptance.shop import Shop
from tests.hosts import Lab
from tests.rented.amazon import amazon
from tests.rented.machine import Rented

pytestmark = pytest.mark.slow

#: Seconds from a claim that is given back to the next one.
RESUMED = 5.0
#: Secrets: of the machines', by the parameter store and the manager; of whoever applies, in the environment and a file.
PLANTED = {
    "TOLD": "planted-in-a-parameter-1729",
    "UNASKED": "planted-by-the-manager-4104",
    "KEY": "planted/key/of/whoever/applies+13832",
    "FILE": "planted-in-a-file-20683",
}


@pytest.fixture
def renting(
    lab: Lab, shop: Shop, require: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Renting]:
    """Return a project in an account of its own."""
    for need in ("moto", "iam", "pulumi"):
        require(need)
    with amazon(lab, tmp_path_factory.mktemp("account")) as cloud:
        made = Renting(cloud, shop, PLANTED["KEY"])
        try:
            yield made
        finally:
            made.close()


def test_machines_are_rented_work_and_are_gone(renting: Renting) -> None:
    (renting.shop.root / ".env").write_text(f"TOLD={PLANTED['FILE']}\n")
    secrets = {"TOLD": "ssm:/team/told", "UNASKED": "secretsmanager:unasked"}
    renting.rent(secrets=secrets)
    renting.cloud.lab("h1")
    gives_up(renting)
    left = works(renting)
    machine = goes_on_elsewhere(renting, left)
    is_called_back(renting, machine)
    may_do_no_more(renting)
    renting.run("destroy", "--yes")
    assert renting.aws.there("monkey:project", "shop") == {} and not renting.cloud.living
    tells_no_secret(renting)


def gives_up(renting: Renting) -> None:
    """A machine whose code is another one than it was told of, and one whose secret is not there, boot once each."""
    cloud, s3 = renting.cloud, renting.s3
    renting.spec("first", 2, "provider: cloud\nsecrets: [TOLD]\n")
    renting.run("plan", "--json")
    renting.run("plan", "--markdown")
    said = renting.run("plan")
    assert "0 → 2" in said and "at most 2 × m5.large × 12 h × $0.11 = $2.64" in said
    cloud.room = 0
    renting.run("apply", "--detach", "--yes")
    bundle = {"Bucket": BUCKET, "Key": next(key for key in renting.everything() if "/bundle/" in key)}
    kept = s3.get_object(**bundle)["Body"].read()
    s3.put_object(**bundle, Body=gzip.compress(pack_files({"__main__.py": b"print('not the agent')\n"})))
    cloud.room = 1
    renting.until(lambda: cloud.machines and not cloud.living, "it does not run what it was not told of")
    s3.put_object(**bundle, Body=kept)
    cloud.room = 1
    renting.until(lambda: len(cloud.machines) == 2 and not cloud.living, "it does nothing without its secret")
    assert cloud.wanted == 0, "nobody comes in their place"
    cloud.room = 100
    said = renting.run("status")
    assert "cloud: a machine gave up: it cannot be set up: what the store has as bundle" in said
    assert "the machine cannot read the secret TOLD at ssm:/team/told" in said


def works(renting: Renting) -> Rented:
    """They work, and go when there is nothing to do; returns one that was hindered from it."""
    renting.aws.client("ssm").put_parameter(Name="/team/told", Value=PLANTED["TOLD"], Type="SecureString")
    renting.aws.client("secretsmanager").create_secret(Name="unasked", SecretString=PLANTED["UNASKED"])
    renting.run("apply", "--detach", "--yes")
    renting.until(lambda: len(renting.cloud.living) == 2 and all(map(renting.working, renting.cloud.living)), "at work")
    machine, other = renting.cloud.living
    other.systemctl("stop", "monkey-watch")
    renting.enough(machine.root, other.root)
    renting.until(lambda: not machine.runs, "it has done all, and leaves")
    renting.until(
        lambda: (other.agent / BYE_FILES).exists(), "so does the agent of the other one, and nobody ends that"
    )
    assert renting.cloud.wanted == 1 and "has left" in machine.told
    noted = [each for place in (machine, other) for each in renting.noted(place.root)]
    assert sorted(each["i"] for each in noted if each["what"] == "ended") == ["0", "1"]
    assert {(each["TOLD"], each["UNASKED"]) for each in noted} == {(digest(PLANTED["TOLD"]), digest(""))}
    assert all(each["user"] for each in noted), "not root"
    assert renting.shop.states("first") == {"succeeded": 2}
    assert "it is ***" in renting.run("logs", noted[0]["job"])
    assert noted[0]["job"][:6] in renting.run("results", "first")
    assert renting.run("plan", "--detailed-exitcode").startswith("No changes")
    return other


def goes_on_elsewhere(renting: Renting, left: Rented) -> Rented:
    """A host, this machine and two that are rented share a queue; one of these is taken back, the next one is cut off.

    `left` has nobody at work any more, and is not counted on. Returns one that is there at the end.
    """
    renting.spec("second", 4, "provider: [here, lab, cloud]\n")
    log = (renting.shop.root.parent / "apply.log").open("w")
    watching = renting.shop.start("apply", "--yes", "specs/second.yaml", stdout=log, stderr=subprocess.STDOUT)
    cloud, (host,) = renting.cloud, renting.cloud.lab("h1")

    def two_work() -> bool:
        # A machine may die as it boots: another one comes in its place.
        return not left.runs and len(cloud.living) == 2 and all(map(renting.working, cloud.living))

    renting.until(lambda: watching.poll() is not None or two_work(), "two new ones work")
    assert watching.poll() is None, Path(log.name).read_text()
    first, second = cloud.living
    places = [Path("/"), host.root, first.root, second.root]
    renting.until(lambda: all(renting.noted(place) for place in places), "each has begun a job")
    renting.enough(places[0])
    renting.until(lambda: renting.noted()[-1]["what"] == "ended", "this machine has nothing to do")
    taken_back(renting, first)
    third = renting.until(lambda: [each for each in cloud.living if each is not second], "another one comes")[0]
    renting.until(lambda: (third.agent / "heard").exists(), "it is heard")
    cloud.room = 0
    cut_off(renting, third)
    # What is held from now on: the goodbye of who has nothing to do.
    goodbye = cloud.hold(lambda call: call.path.endswith("/beat") and b'"left":true' in call.body)
    renting.enough(*places[1:], Path("/"))
    renting.until(lambda: watching.poll() is not None, "all is done")
    log.close()
    said = Path(log.name).read_text()
    renting.said += said
    assert watching.returncode == 0, said
    ended = {each["i"] for place in places for each in renting.noted(place) if each["what"] == "ended"}
    assert sorted(ended) == ["0", "1", "2", "3"]
    renting.until(goodbye.reached.is_set, "it finds nothing to do")
    return second


def taken_back(renting: Renting, machine: Rented) -> None:
    """Its job's last step is saved, and this machine goes on from there, at once; another machine is to come."""
    [job] = {each["job"] for each in renting.noted(machine.root)}
    before = renting.noted(machine.root)[-1]["step"]
    action = {"action": "terminate", "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 120))}
    # Whoever goes on is not to be let go at once.
    (renting.base / "enough").unlink()
    with slowness() as lost:
        machine.metadata.said["meta-data/spot/instance-action"] = json.dumps(action)
        renting.until(lambda: any(each["job"] == job for each in renting.noted()), "this machine goes on")
    last = [each for each in renting.noted(machine.root) if each["what"] == "saved"][-1]
    begun = next(each for each in renting.noted() if each["job"] == job)
    # It may have ended between saving a step and noting it.
    assert begun["what"] == "begun" and before <= begun["step"] <= last["step"] + 1, "what was saved at the end"
    log = renting.entries(job)
    [*_, (released, end)] = [each for each in log if each[1].get("outcome") == "released"]
    claimed = next(at for at, entry in log if at > released and "outcome" not in entry)
    print(f"released, and claimed {claimed - released:.2f} s later; {lost():.2f} s of them were not ours")
    assert end["reason"] == "spot notice" and claimed - released < RESUMED + lost()
    renting.until(lambda: not machine.runs, "it is gone by itself")
    assert renting.cloud.wanted == 2, "its group has another one in its place"


def cut_off(renting: Renting, machine: Rented) -> None:
    """Who does not reach the store ends, with nobody's leave."""
    # No monkey.yaml says less than two minutes.
    script = machine.root / "opt/monkey/machine.py"
    text = script.read_text()
    assert text.count('"orphan_timeout":900.0') == 1
    script.write_text(text.replace('"orphan_timeout":900.0', '"orphan_timeout":20.0'))
    machine.cut()
    machine.systemctl("restart", "monkey-watch")
    renting.until(lambda: not machine.runs, "who is cut off ends")
    assert "the store has acknowledged no heartbeat for" in machine.told


def is_called_back(renting: Renting, machine: Rented) -> None:
    """Work that comes while a machine leaves is done by it, and it is gone after that."""
    gate = renting.cloud.gates[-1]
    there = len(renting.aws.there("monkey:project", "shop"))
    before = len(renting.noted(machine.root))
    renting.spec("third", 1)
    renting.run("apply", "--detach", "--yes", "specs/third.yaml")
    assert len(renting.aws.there("monkey:project", "shop")) == there, "nobody else is asked for"
    gate.open.set()
    renting.until(lambda: not machine.runs, "it has done that as well, and leaves")
    noted = renting.noted(machine.root)[before:]
    assert [each["what"] for each in noted] == ["begun", "ended"] and renting.shop.states("third") == {"succeeded": 1}
    assert renting.cloud.wanted == 1, "the one that never came"


def may_do_no_more(renting: Renting) -> None:
    """All that machines did, and nothing else, is what their role allows; who has their keys is refused the rest."""
    rights = renting.cloud.rights
    assert rights.refused == []
    needed = {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "ssm:GetParameter", "secretsmanager:GetSecretValue"}
    assert rights.used == {*needed, "autoscaling:TerminateInstanceInAutoScalingGroup"}
    its, other = (renting.s3_of(renting.cloud.sessions[-1], secret) for secret in ("", "another"))
    its.get_object(Bucket=BUCKET, Key="team/format")
    for s3, key, why in (
        (its, "team/none", "NoSuchKey"),
        (its, "theirs/format", "AccessDenied"),
        (other, "team/format", "SignatureDoesNotMatch"),
    ):
        with pytest.raises(ClientError, match=why):
            s3.get_object(Bucket=BUCKET, Key=key)
    with pytest.raises(ClientError, match="AccessDenied"):
        its.list_objects_v2(Bucket=BUCKET)


def tells_no_secret(renting: Renting) -> None:
    """Values are nowhere but where they were planted."""
    keys = [value for each in renting.cloud.sessions for value in (each.keys.secret_key, each.keys.token)]
    for secret in (*PLANTED.values(), *keys):
        own = {str(renting.shop.root / ".env")} if secret == PLANTED["FILE"] else set()
        assert set(renting.places_of(secret)) <= own
