"""AWS, as kinds of the double ask it: by boto3, whose errors are told as the real provider tells them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from tests.clouds.kind import Props, Refused

#: Codes by which AWS says that something is not there.
GONE = ("NotFound", "NoSuchEntity", "NoSuchBucket", "404", "NotFoundException")


class Gone(Refused):
    """There is no such thing."""


class Api:
    """Clients of one account, in one region unless a resource says another."""

    def __init__(self, region: str, tags: Mapping[str, str]) -> None:
        """Ask `region`; all that has tags gets `tags` besides its own."""
        self.region, self.tags = region, dict(tags)
        self._session = boto3.session.Session(region_name=region)
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    def client(self, service: str) -> Any:
        """Return a client that anybody may use; it tries again what is throttled, as the real one does."""
        with self._lock:
            if service not in self._clients:
                config = Config(retries={"mode": "standard", "max_attempts": 5}, max_pool_connections=32)
                self._clients[service] = self._session.client(service, config=config)
            return self._clients[service]

    def ask(self, service: str, operation: str, **given: Any) -> Props:
        """Call an operation ("CreateVpc"). Raises Gone, Refused."""
        client = self.client(service)
        name = {api: python for python, api in client.meta.method_to_api_mapping.items()}[operation]
        given = {key: value for key, value in given.items() if value is not None}
        return told(operation, lambda: getattr(client, name)(**given))

    def find(self, service: str, operation: str, **given: Any) -> Props | None:
        """Call an operation; None where AWS says that there is no such thing."""
        try:
            return self.ask(service, operation, **given)
        except Gone:
            return None


def told(operation: str, call: Callable[[], Props]) -> Props:
    """Call it. Raises Gone, Refused."""
    try:
        return call()
    except ClientError as exc:
        error, meta = exc.response["Error"], exc.response.get("ResponseMetadata", {})
        service = "Auto Scaling" if exc.operation_name.find("AutoScaling") >= 0 else "AWS"
        text = (
            f"operation error {service}: {operation}, https response error StatusCode: {meta.get('HTTPStatusCode')}, "
            f"RequestID: {meta.get('RequestId', '')}, api error {error['Code']}: {error['Message']}"
        )
        raise (Gone if error["Code"].endswith(GONE) else Refused)(text) from exc
    except NoCredentialsError as exc:
        raise Refused("No valid credential sources found.") from exc
    except BotoCoreError as exc:
        raise Refused(f"operation error AWS: {operation}, {exc}") from exc


def pascal(given: Any) -> Any:
    """Return it with names as AWS has them: "minSize" is "MinSize"."""
    if isinstance(given, dict):
        return {key[:1].upper() + key[1:]: pascal(value) for key, value in given.items() if value is not None}
    return list(map(pascal, given)) if isinstance(given, list) else given


def camel(given: Any) -> Any:
    """Return it with names as Pulumi has them; what is empty is left out."""
    if isinstance(given, dict):
        found = {key[:1].lower() + key[1:]: camel(value) for key, value in given.items()}
        return {key: value for key, value in found.items() if value not in (None, {}, [])}
    return list(map(camel, given)) if isinstance(given, list) else given


def as_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    """Return tags as AWS has them."""
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def as_map(tags: list[dict[str, Any]] | None) -> dict[str, str]:
    """Return tags as Pulumi has them; those that AWS itself gives left out."""
    return {each["Key"]: each["Value"] for each in tags or [] if not each["Key"].startswith("aws:")}


def canonical(document: Any) -> str:
    """Return a policy as one text."""
    return json.dumps(json.loads(document) if isinstance(document, str) else document, sort_keys=True)
