"""What an agent asks its cloud: whether its machine is about to be taken away, and the values of secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from monkey.fleet.cloud.aws_machine import AwsMachine
from monkey.fleet.cloud.gcp_machine import GcpMachine
from monkey.fleet.cloud.http_client import ApiError

#: Why a machine is left: it is about to be taken away; it may be; it ends before its sweeps do.
SPOT, REBALANCE, OVER = "spot notice", "rebalance", "its time is over"


def read_notice(cloud: AwsMachine | GcpMachine) -> str:
    """Return SPOT, REBALANCE, OVER, or "" where nothing was said. Raises ApiError, ApiDown."""
    if isinstance(cloud, GcpMachine):
        return SPOT if cloud.about("preempted") == "TRUE" else OVER if cloud.outlived() else ""
    if cloud.about("meta-data/spot/instance-action"):
        return SPOT
    return REBALANCE if cloud.about("meta-data/events/recommendations/rebalance") else ""


def read_secret(cloud: AwsMachine | GcpMachine, where: str) -> str:
    """Return a secret's value: it is at `where`, as monkey.yaml says it. Raises ApiError, ApiDown."""
    try:
        return _of_google(cloud, where) if isinstance(cloud, GcpMachine) else _of_amazon(cloud, where)
    except (ValueError, LookupError) as exc:
        raise ApiError(where, 200, f"what came cannot be read: {exc!r}") from None


def _of_amazon(cloud: AwsMachine, where: str) -> str:
    kind, _, name = where.partition(":")
    if kind == "ssm":
        asked = {"Name": name, "WithDecryption": True}
        return str(_amazon(cloud, "ssm", "AmazonSSM.GetParameter", asked)["Parameter"]["Value"])
    found = _amazon(cloud, "secretsmanager", "secretsmanager.GetSecretValue", {"SecretId": name})
    if "SecretString" not in found:
        raise ApiError(where, 200, "expected text, found bytes: write it as text")
    return str(found["SecretString"])


def _amazon(cloud: AwsMachine, service: str, target: str, asked: Mapping[str, Any]) -> Any:
    name = str(asked.get("SecretId", ""))
    region = name.split(":")[3] if name.startswith("arn:") else cloud.settings["region"]
    said = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target}
    body = json.dumps(asked).encode()
    return json.loads(cloud.call("POST", cloud.at(service, region), region, service, body, said))


def _of_google(cloud: GcpMachine, where: str) -> str:
    path = where if where.startswith("projects/") else f"projects/{cloud.settings['gcp_project']}/secrets/{where}"
    path += "" if "/versions/" in path else "/versions/latest"
    found = json.loads(cloud.call("GET", f"{cloud.at('secretmanager')}v1/{path}:access"))
    return base64.b64decode(found["payload"]["data"]).decode()


def replace_machine(cloud: AwsMachine | GcpMachine) -> None:
    """Have another machine come in this one's place, where its group does not see to that. Raises ApiError, ApiDown."""
    if isinstance(cloud, GcpMachine):
        cloud.renew()
