"""A machine of Google's: its metadata, and what its service account may do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from monkey.fleet.cloud.http_client import ApiError, ask_api

#: Seconds within which the metadata answer: they are on the machine's own host.
CLOSE = 5.0
#: Seconds before a machine's end at which another one takes its place, where that may stay longer.
NEARLY = 240.0
#: Of a machine's metadata: when it ends, in seconds since the epoch.
ENDS = "monkey-ends"


def find_api_url(service: str) -> str:
    """Return the URL of an API of Google's; a variable that Google's own tools read, too, may name another one."""
    named = os.environ.get(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{service.upper()}")
    return (named or f"https://{service}.googleapis.com").rstrip("/") + "/"


class GcpMachine:
    """This machine, and its service account."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """Take the settings in the startup script."""
        self.settings = settings
        self._metadata = f"http://{os.environ.get('GCE_METADATA_HOST') or 'metadata.google.internal'}"
        #: What was read of the account, so that no log shows it.
        self.seen: set[str] = set()

    def about(self, path: str) -> str:
        """Return what the metadata say at a path, "" where there is nothing. Raises ApiError, ApiDown."""
        url = f"{self._metadata}/computeMetadata/v1/instance/{path}"
        try:
            return ask_api("GET", url, {"Metadata-Flavor": "Google"}, limit=CLOSE, direct=True).decode().strip()
        except ApiError as exc:
            if exc.status == 404:
                return ""
            raise

    def name(self) -> str:
        """Return the machine's name, which its group gave it. Raises ApiError, ApiDown."""
        return self.about("name")

    def call(self, method: str, url: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        """Return what Google answers to who has the machine's account. Raises ApiError, ApiDown."""
        found = self.about("service-accounts/default/token")
        if not found:
            raise ApiError("the machine's service account", 404, "it has none")
        token = json.loads(found)["access_token"]
        self.seen.add(token)
        said = {"Authorization": f"Bearer {token}", **({"Content-Type": kind} if body is not None else {})}
        return ask_api(method, url, said, body)

    def _object(self, key: str) -> str:
        parts = urlsplit(self.settings["store"])
        at = parse_qs(parts.query).get("endpoint", ["https://storage.googleapis.com"])[0].rstrip("/")
        prefix = unquote(parts.path).strip("/")
        return f"{at}/{parts.netloc}/{quote(f'{prefix}/{key}' if prefix else key, safe='/-_.~')}"

    def fetch(self, key: str) -> bytes:
        """Return what the store has at a key. Raises ApiError, ApiDown."""
        return self.call("GET", self._object(key))

    def put(self, key: str, data: bytes) -> None:
        """Write into the store. Raises ApiError, ApiDown."""
        self.call("PUT", self._object(key), data, "application/octet-stream")

    def leave(self) -> None:
        """Have the group delete this machine, and want one less. Raises ApiError, ApiDown."""
        zone = self.about("zone").rpartition("/")[2]
        asked = {"instances": [f"zones/{zone}/instances/{self.name()}"], "skipInstancesOnValidationError": True}
        at = f"{self.at('compute')}compute/v1/projects/{self.settings['gcp_project']}/{self.settings['group']}"
        self.call("POST", f"{at}/deleteInstances", json.dumps(asked).encode())

    def outlived(self) -> bool:
        """Say whether this machine ends soon, and its group would make one that stays longer.

        Raises ApiError, ApiDown.
        """
        ends = self.about(f"attributes/{ENDS}")
        if not ends or float(ends) - time.time() > NEARLY:
            return False
        newest = json.loads(self.call("GET", self._group()))["versions"][0]["instanceTemplate"]
        ours = self.about("attributes/instance-template")
        return bool(newest.partition("?")[0].rpartition("/")[2] != ours.rpartition("/")[2])

    def renew(self) -> None:
        """Have the group make this machine again, as it makes machines now. Raises ApiError, ApiDown."""
        asked = {"instances": [f"zones/{self.about('zone').rpartition('/')[2]}/instances/{self.name()}"]}
        self.call("POST", f"{self._group()}/recreateInstances", json.dumps(asked).encode())

    def _group(self) -> str:
        # As the group itself wrote it down: projects/NUMBER/regions/R/instanceGroupManagers/NAME.
        return f"{self.at('compute')}compute/v1/{self.about('attributes/created-by')}"

    def at(self, service: str) -> str:
        """Return the URL of an API."""
        return find_api_url(service)
