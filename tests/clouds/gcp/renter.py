"""A fleet at Google as apply has it: what `tests.clouds.renter` is for AWS, its command line as well."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from monkey_stacks.gcp.fleet import make_fleet
from tests.clouds import renter
from tests.clouds.gcp.offers import REGION

GCP_PROJECT = "my-project"


class Renter(renter.Renter):
    """Whoever applies."""

    make = staticmethod(make_fleet)
    jobs: ClassVar[int] = 8
    usual: ClassVar[Mapping[str, Any]] = {
        "type": "gcp",
        "gcp_project": GCP_PROJECT,
        "region": REGION,
        "machine_type": "e2-standard-2",
        "max_instances": 4,
    }


if __name__ == "__main__":
    renter.main(Renter, *sys.argv[1:])
