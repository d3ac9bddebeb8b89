"""`pulumi-resource-aws`: the double of the provider, as Pulumi starts it."""

from __future__ import annotations

import sys
from typing import Any

import boto3

from tests.clouds.aws import firewall, functions, machines, network, roles, routes, storage
from tests.clouds.aws.api import Api
from tests.clouds.double import Double, serve
from tests.clouds.kind import Kind, Props, Refused

#: What the real one says (provider/errors/*.txt of pulumi-aws).
NO_REGION = (
    "Missing region information\nMake sure you have set your AWS region, e.g. `pulumi config set aws:region us-west-2`."
)
NOBODY = (
    "No valid credential sources found.\nPlease see https://www.pulumi.com/registry/packages/aws/"
    "installation-configuration/ for more information about providing credentials."
)
WRONG = (
    "The configured AWS credentials are invalid or have expired.\nPlease see https://www.pulumi.com/registry/packages/"
    "aws/installation-configuration/ for more information about providing credentials."
)
EXPIRED = "The configured AWS credentials have expired.\nRefresh the temporary credentials and try again."


class Aws(Double):
    package, provider = "pulumi_aws", "pulumi:providers:aws"

    def known(self) -> list[Kind]:
        found = [network, routes, firewall, roles, machines, storage]
        return [kind() for module in found for kind in module.KINDS]

    def connect(self, settings: Props) -> Api:
        """Look who we are, as the real one does before anything else."""
        region = settings.get("region") or boto3.session.Session().region_name
        if not region:
            raise Refused(NO_REGION)
        if region not in boto3.session.Session().get_available_regions("ec2"):
            raise Refused(f"invalid AWS Region: {region}")
        api = Api(region, (settings.get("defaultTags") or {}).get("tags") or {})
        if not settings.get("skipCredentialsValidation"):
            _identify(api)
        return api

    def stamp(self, want: Props) -> Props:
        """Add the provider's own tags."""
        tags = self.cloud.tags if isinstance(self.cloud, Api) else {}
        listed = isinstance(want.get("tags"), list)
        return {**want, "tags": {**tags, **want.get("tags", {})}} if tags and not listed else want

    def call(self, token: str, given: Props) -> Any:
        return functions.call(self.cloud, token, given)


def _identify(api: Api) -> None:
    try:
        api.ask("sts", "GetCallerIdentity")
    except Refused as exc:
        if "No valid credential" in str(exc):
            raise Refused(NOBODY) from exc
        raise Refused(EXPIRED if "ExpiredToken" in str(exc) else WRONG) from exc


if __name__ == "__main__":
    serve(Aws, sys.argv[1:])
