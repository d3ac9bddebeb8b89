"""`pulumi-resource-gcp`: the double of the provider, as Pulumi starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.clouds.double import Double, serve
from tests.clouds.gcp.kinds import KINDS
from tests.clouds.gcp.shelf import SHELF, Shelf
from tests.clouds.kind import Kind, Props, Refused

#: As pulumi-gcp says it where there is nobody to be.
NOBODY = (
    "Unable to find credentials, either GOOGLE_APPLICATION_CREDENTIALS or gcloud application default credentials must "
    "be set.\n\nTo configure `gcloud application default` credentials, run `gcloud auth application-default login`."
)


class Gcp(Double):
    package, provider = "pulumi_gcp", "pulumi:providers:gcp"

    def known(self) -> list[Kind]:
        return [kind() for kind in KINDS]

    def connect(self, settings: Props) -> Shelf:
        """Look who we are: anybody with a token of any kind."""
        given = ("GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CREDENTIALS")
        if not settings.get("accessToken") and not any(os.environ.get(name) for name in given):
            raise Refused(NOBODY)
        place = {name: str(settings.get(name) or "") for name in ("project", "region", "zone")}
        return Shelf(Path(os.environ[SHELF]), **place)


if __name__ == "__main__":
    serve(Gcp, sys.argv[1:])
