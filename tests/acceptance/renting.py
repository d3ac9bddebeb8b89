"""A project whose machines are rented at AWS by the real CLI and the real Pulumi, and really boot, beside others."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

from tests import services
from tests.acceptance.rented_site import holding, lines
from tests.acceptance.shop import Shop, until
from tests.clouds.account import REGION
from tests.rented.amazon import Amazon
from tests.rented.machine import Rented
from tests.rented.rights import Session

BUCKET = "monkeys"
URL = f"s3://{BUCKET}/team?region={REGION}"
#: Seconds for one command, and for a machine to boot and end, where others have the processor.
SLOWLY, LONG = 600.0, 300.0
#: Notes where and when it is at what, saves after each step, and goes on until it is let go.
JOB = """\
import hashlib, json, os, sys, time
base, i = sys.argv[1:]
os.makedirs(base, exist_ok=True)
state = os.environ["MONKEY_CHECKPOINT_DIR"] + "/step"
step = int(open(state).read()) if os.path.exists(state) else 0
told = {name: hashlib.sha256(os.environ.get(name, "").encode()).hexdigest() for name in ("TOLD", "UNASKED")}
def note(what):
    line = {"what": what, "job": os.environ["MONKEY_JOB"], "i": i, "step": step, "user": os.getuid(), **told}
    with open(base + "/ledger", "a") as file:
        file.write(json.dumps(line) + "\\n")
note("begun")
print("it is", os.environ.get("TOLD", "nothing"), flush=True)
while not os.path.exists(base + "/enough"):
    step += 1
    with open(state + ".aside", "w") as file:
        file.write(str(step))
    os.replace(state + ".aside", state)
    note("saved")
    time.sleep(0.2)
note("ended")
"""


class Renting:
    """The project, and what becomes of it where machines can be seen from outside."""

    def __init__(self, cloud: Amazon, shop: Shop, planted: str) -> None:
        """Make it; `planted`: a secret of whoever applies."""
        self.cloud, self.aws, self.shop = cloud, cloud.aws, shop
        self.image = cloud.aws.image()
        where = {"LocationConstraint": REGION}
        self.s3 = cloud.aws.client("s3")
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        path = os.pathsep.join([str(services.pulumi_directory()), self.aws.environment["PATH"], shop.env["PATH"]])
        shop.env |= self.aws.environment | {"PATH": path, "PULUMI_HOME": str(shop.root.parent / "pulumi")}
        shop.env |= {"AWS_SECRET_ACCESS_KEY": planted, "MONKEY_SSH_CONFIG": str(cloud.lab.config)}
        # What machines are sent is built once.
        shop.env["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        #: On every machine, the one where jobs write.
        self.base = Path(tempfile.mkdtemp(prefix="monkey-renting-", dir="/var/tmp"))
        self.base.chmod(0o777)
        (shop.root / "job.py").write_text(JOB)
        #: All that was said by commands.
        self.said = ""

    def rent(self, **more: Any) -> None:
        """Write monkey.yaml."""
        cloud = {"type": "aws", "region": REGION, "instance_type": "m5.large", "image": self.image, "price": 0.11}
        cloud |= {"max_instances": 2, "max_slots": 1, "idle_timeout": "2s", "spot": True, **more}
        here = {"type": "local", "max_slots": 1, "idle_timeout": "10m"}
        fleets = {"here": here, "lab": {"type": "ssh", "hosts": ["h1"], "max_slots": 1}, "cloud": cloud}
        (self.shop.root / "monkey.yaml").write_text(json.dumps({"project": "shop", "store": URL, "providers": fleets}))

    def spec(self, name: str, jobs: int, more: str = "provider: cloud\n") -> None:
        """Write a sweep, whose jobs go on until they are let go where they run."""
        command = f"command: [python3, job.py, '{self.base}', '{{i}}']\noutputs: []\ncheckpoint_every: 1h\n"
        self.shop.spec(f"{command}expires: 12h\nenv: {{SWEEP: {name}}}\n{more}", jobs=jobs, name=name)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Return what a command says; with Pulumi and its plugins it may wait for the processor for long."""
        done = self.shop.run(*arguments, code=code, patience=SLOWLY)
        self.said += done.stdout + done.stderr
        return done.stdout + done.stderr

    def until(self, what: Callable[[], Any], why: str) -> Any:
        """Wait until it is so; tells all that machines said where it never is."""
        try:
            return until(what, why, patience=LONG, step=0.25)
        except AssertionError as exc:
            exc.add_note(self.cloud.told)
            raise

    def noted(self, root: Path = Path("/")) -> list[dict[str, Any]]:
        """Return what jobs noted on the machine of that root; by default on this one."""
        return lines(root / str(self.base)[1:] / "ledger")

    def working(self, machine: Rented, sweep: int = 1) -> bool:
        """Say whether a job has come so far on the machine that something was saved."""
        return any(each["step"] > 3 for each in self.noted(machine.root))

    def enough(self, *roots: Path) -> None:
        """Let the jobs of these machines end."""
        for root in roots:
            (root / str(self.base)[1:] / "enough").touch()

    def entries(self, job: str) -> list[tuple[float, dict[str, Any]]]:
        """Return what was written into a job's log, and when it came."""
        mark = re.compile(rf".*/jobs/{job}/\d+")
        return [(at, json.loads(body)) for at, key, body in list(self.cloud.written) if mark.fullmatch(key)]

    def everything(self) -> dict[str, bytes]:
        """Return all that is in the bucket, by keys, unpacked."""
        found = {}
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for each in page.get("Contents", ()):
                data = self.s3.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read()
                found[each["Key"]] = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        return found

    def s3_of(self, session: Session, secret: str = "") -> Any:
        """Return a client of S3 that has the keys of a machine; `secret`: which it signs with instead."""
        keys = {"aws_access_key_id": session.keys.access_key, "aws_session_token": session.keys.token}
        keys["aws_secret_access_key"] = secret or session.keys.secret_key
        return boto3.client("s3", endpoint_url=self.aws.wire.endpoint, region_name=REGION, **keys)

    def user_data(self) -> str:
        """Return the user data of all versions of all templates."""
        ec2 = self.aws.client("ec2")
        names = [each["LaunchTemplateId"] for each in ec2.describe_launch_templates()["LaunchTemplates"]]
        asked = (ec2.describe_launch_template_versions(LaunchTemplateId=name) for name in names)
        found = [each["LaunchTemplateData"]["UserData"] for of in asked for each in of["LaunchTemplateVersions"]]
        return "\n".join(base64.b64decode(each).decode() for each in found)

    def places_of(self, secret: str) -> list[str]:
        """Return where the secret is to be found: in what was said, in the bucket, or on disks."""
        found = [key for key, data in self.everything().items() if secret.encode() in data]
        found += ["output"] * (secret in self.said)
        found += ["user data"] * (secret in self.user_data())
        disks = [machine.root.parent / "upper" for machine in self.cloud.machines.values()]
        return found + holding(secret, *disks, *(each for each in self.shop.root.parent.iterdir() if each.is_dir()))

    def close(self) -> None:
        """Take away what jobs wrote here and on hosts."""
        for root in (Path("/"), *(machine.root for machine in self.cloud.lab("h1"))):
            shutil.rmtree(root / str(self.base)[1:], ignore_errors=True)


def digest(text: str) -> str:
    """Return what a job notes of a secret."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def slowness() -> Iterator[Callable[[], float]]:
    """Give a function that returns how many seconds this machine had no time for us meanwhile."""
    lost, over = [0.0], threading.Event()

    def tick() -> None:
        before = time.monotonic()
        while not over.wait(0.05):
            now = time.monotonic()
            lost[0] += max(0.0, now - before - 0.1)
            before = now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield lambda: lost[0]
    finally:
        over.set()
        thread.join()
