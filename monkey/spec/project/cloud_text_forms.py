"""What clouds' names look like: regions, types of machines, images, networks, secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, describe_value


@dataclass(frozen=True)
class TextForm:
    """What a text of a cloud's must look like."""

    pattern: str
    what: str
    hint: str

    def mistake(self, raw: Any, path: tuple[str | int, ...]) -> Iterator[Mistake]:
        """Yield what is wrong with it."""
        if not isinstance(raw, str) or not re.fullmatch(self.pattern, raw):
            yield Mistake(path, f"expected {self.what}, found {describe_value(raw)}", self.hint)


TYPE_FORMS = {
    "aws": TextForm(r"[a-z][a-z0-9-]*\.[a-z0-9-]+", "a type of instances", "write one as AWS does: g5.xlarge"),
    "gcp": TextForm(r"[a-z][a-z0-9]*-[a-z0-9-]+", "a type of machines", "write one as Google does: g2-standard-8"),
}
REGION_FORMS = {
    "aws": TextForm(r"[a-z]{2}(-[a-z]+)+-[0-9]+", "a region", "write one as AWS does, without a zone: eu-central-1"),
    "gcp": TextForm(r"[a-z]+-[a-z]+[0-9]+", "a region", "write one as Google does, without a zone: europe-west4"),
}
IMAGE_FORMS = {
    "aws": TextForm(
        r"ami-[0-9a-f]+|resolve:ssm:/?[A-Za-z0-9_./-]+",
        "an image",
        "write ami-…, or resolve:ssm:/NAME-OF-A-PUBLIC-PARAMETER; leave it out for Debian",
    ),
    "gcp": TextForm(
        r"[a-z0-9.:_-]+(/[a-z0-9_-]+)+",
        "an image",
        "write PROJECT/FAMILY (debian-cloud/debian-12), or projects/P/global/images/NAME; leave it out for Debian",
    ),
}
SECRET_FORMS = {
    "aws": TextForm(
        r"ssm:/?[A-Za-z0-9_./-]+|secretsmanager:[A-Za-z0-9/_+=.@:-]+",
        "where the machines read it",
        "write ssm:/PATH, or secretsmanager:NAME (or its ARN)",
    ),
    "gcp": TextForm(
        r"(projects/[a-z0-9.:-]+/secrets/)?[A-Za-z0-9_-]+(/versions/([0-9]+|latest))?",
        "where the machines read it",
        "write NAME, or projects/P/secrets/NAME, as Secret Manager has it",
    ),
}
VPC_FORM = TextForm(
    r"vpc-[0-9a-f]+", "a VPC", "write vpc-…, and subnets: [subnet-…] of it; or neither, for one of our own"
)
SUBNET_FORM = TextForm(r"subnet-[0-9a-f]+", "a subnet", "write subnet-…")
NETWORK_FORM = TextForm(
    r"[a-z0-9./:-]+", "a network's name", "write one, and subnetwork:, or neither, for one of our own"
)
PROJECT_FORM = TextForm(
    r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", "a project of Google's", "write its id: my-project-1"
)
ZONE_FORM = TextForm(r"[a-z]+-[a-z]+[0-9]+-[a-z]", "a zone", "write zones of the region: [europe-west4-a]")
