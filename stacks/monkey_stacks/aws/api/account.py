"""Who we are on AWS, in one region: clients of its services, and the keys by which Pulumi is the same."""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import dataclass, field
from typing import Any

from monkey import origin
from monkey.errors import FleetError
from monkey.store.bucket.url import parse_bucket_url
from monkey_stacks.aws.api.errors import refuse_pages, translate_errors

#: Seconds for one request; each is tried a few times.
_LIMITS = {"connect_timeout": 10, "read_timeout": 30, "retries": {"mode": "standard", "max_attempts": 4}}


@dataclass
class AwsAccount:
    """An account and a region of it, as AWS's own tools would find them. Clients are made when they are needed."""

    region: str
    profile: str | None = None
    _session: Any = None
    _clients: dict[str, Any] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def client(self, service: str) -> Any:
        """Return the client of a service ("ec2", "autoscaling", "iam", "ssm"). Raises FleetError."""
        with self._making, translate_errors():
            if service not in self._clients:
                from botocore.config import Config

                client = self._opened().client(service, config=Config(**_LIMITS))
                client.meta.events.register("after-call", refuse_pages)
                self._clients[service] = client
            return self._clients[service]

    def keys(self) -> dict[str, str]:
        """Return the variables by which another program is who we are, as long as these keys live. Raises FleetError.

        Pulumi would find them by itself, but for those that it is given for its own state.
        """
        with self._making, translate_errors():
            found = self._opened().get_credentials()
            frozen = found.get_frozen_credentials() if found is not None else None
        if frozen is None or not frozen.access_key:
            raise FleetError(
                "there are no credentials for AWS here",
                hint="log in (`aws configure`, `aws sso login`), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        keys = {"AWS_ACCESS_KEY_ID": frozen.access_key, "AWS_SECRET_ACCESS_KEY": frozen.secret_key}
        # An empty one, where these have none: an old one in the environment does not belong to them.
        return {**keys, "AWS_SESSION_TOKEN": frozen.token or "", "AWS_REGION": self.region}

    @property
    def partition(self) -> str:
        """What ARNs of the region begin with: "aws", "aws-cn", "aws-us-gov"."""
        with self._making:
            return str(self._opened().get_partition_for_region(self.region))

    def _opened(self) -> Any:
        if self._session is None:
            import boto3

            self._session = boto3.Session(profile_name=self.profile, region_name=self.region)
        return self._session


def open_account(region: str, store_url: str) -> AwsAccount:
    """Return who we are there: who we are for the store, where that names a profile. Raises FleetError, StoreError."""
    for package, what in (("boto3", "AWS is asked by boto3"), ("pulumi_aws", "machines of AWS are made by pulumi-aws")):
        if importlib.util.find_spec(package) is None:
            raise FleetError(f"{what}, which is not installed here", hint=origin.hint_install("aws"))
    return AwsAccount(
        region, parse_bucket_url(store_url).options.get("profile") if store_url.startswith("s3://") else None
    )
