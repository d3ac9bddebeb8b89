"""A machine of Amazon's: its metadata by IMDSv2, and what its role may do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from monkey.fleet.cloud.http_client import ApiError, ask_api
from monkey.fleet.cloud.signing import AwsKeys, sign_request

#: Seconds that a token for the metadata is good for.
TOKEN = 21600
#: Seconds within which the metadata answers: it is on the machine's own host.
NEAR = 5.0
#: Services, and how the variables name them that say where they are.
VARIABLES = {"s3": "S3", "autoscaling": "AUTO_SCALING", "ssm": "SSM", "secretsmanager": "SECRETS_MANAGER"}


class AwsMachine:
    """This machine, and its role."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Take the settings in the user data."""
        self.settings = settings
        here = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
        self._metadata, self._token = here.rstrip("/"), ""
        #: What was read of the role, so that no log shows it.
        self.seen: set[str] = set()

    def about(self, path: str) -> str:
        """Return what the metadata say at a path, "" where there is nothing. Raises ApiError, ApiDown."""
        for _ in range(2):
            if not self._token:
                ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN)}
                url = f"{self._metadata}/latest/api/token"
                self._token = ask_api("PUT", url, ttl, b"", limit=NEAR, direct=True).decode()
            try:
                said = {"X-aws-ec2-metadata-token": self._token}
                return ask_api("GET", f"{self._metadata}/latest/{path}", said, limit=NEAR, direct=True).decode()
            except ApiError as exc:
                if exc.status == 404:
                    return ""
                if exc.status != 401:
                    raise
                self._token = ""  # its time is over
        raise ApiError(f"GET {path}", 401, "the metadata take no token of theirs")

    def name(self) -> str:
        """Return the machine's id. Raises ApiError, ApiDown."""
        return self.about("meta-data/instance-id").strip()

    def _keys(self) -> AwsKeys:
        where = "meta-data/iam/security-credentials/"
        role = self.about(where).strip()
        if not role:
            raise ApiError("the machine's role", 404, "it has none")
        said = json.loads(self.about(where + role))
        keys = AwsKeys(said["AccessKeyId"], said["SecretAccessKey"], said["Token"])
        self.seen.update((keys.secret, keys.token))
        return keys

    def call(self, method: str, url: str, region: str, service: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return what a service answers to who has the machine's role. Raises ApiError, ApiDown."""
        said = sign_request(method, url, region, service, self._keys(), body, headers, time.time())
        return ask_api(method, url, said, body if method != "GET" else None)

    def at(self, service: str, region: str) -> str:
        """Return where a service is: Amazon's tools read the same variables."""
        named = os.environ.get(f"AWS_ENDPOINT_URL_{VARIABLES[service]}") or os.environ.get("AWS_ENDPOINT_URL")
        tail = ".cn" if region.startswith("cn-") else ""
        return (named or f"https://{service}.{region}.amazonaws.com{tail}").rstrip("/") + "/"

    def _object(self, key: str) -> tuple[str, str]:
        """Return the URL of a key of the store, and its region."""
        parts = urlsplit(self.settings["store"])
        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        region = options.get("region") or self.settings["region"]
        prefix = unquote(parts.path).strip("/")
        path = quote(f"{prefix}/{key}" if prefix else key, safe="/-_.~")
        at = f"{options['endpoint'].rstrip('/')}/" if "endpoint" in options else self.at("s3", region)
        if "amazonaws.com" not in at or "." in parts.netloc:
            return f"{at}{parts.netloc}/{path}", region
        return f"{at.replace('://', f'://{parts.netloc}.', 1)}{path}", region

    def fetch(self, key: str) -> bytes:
        """Return what the store has at a key. Raises ApiError, ApiDown."""
        url, region = self._object(key)
        return self.call("GET", url, region, "s3", b"", {})

    def put(self, key: str, data: bytes) -> None:
        """Write into the store. Raises ApiError, ApiDown."""
        url, region = self._object(key)
        self.call("PUT", url, region, "s3", data, {"Content-Type": "application/octet-stream"})

    def leave(self) -> None:
        """End this machine, and have its group want one less. Raises ApiError, ApiDown."""
        region = self.settings["region"]
        asked = {"Action": "TerminateInstanceInAutoScalingGroup", "Version": "2011-01-01", "InstanceId": self.name()}
        body = urlencode({**asked, "ShouldDecrementDesiredCapacity": "true"}).encode()
        said = {"Content-Type": "application/x-www-form-urlencoded"}
        self.call("POST", self.at("autoscaling", region), region, "autoscaling", body, said)
