"""`metrics: grafana:` in monkey.yaml: where the dashboards are shown, and the links to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from monkey.spec.yaml.mistakes import Mistake, describe_value


def parse_grafana_url(raw: Mapping[str, Any] | None) -> str:
    """Return the URL that a `metrics:` without mistakes has of Grafana; "" where it has none."""
    return str((raw or {}).get("grafana", "")).rstrip("/")


def find_grafana_mistakes(url: Any) -> list[Mistake]:
    """Return what is wrong with the value of `grafana`: browsers open it, so it is never a script."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, good = None, False
    if not good or parts is None or parts.query or parts.fragment or "@" in parts.netloc or re.search(r"\s", url):
        hint = "write what a browser opens: https://grafana.lab or https://lab.example/grafana"
        return [Mistake((), f"expected Grafana's URL, found {describe_value(url)}", hint)]
    return []


def make_grafana_link(url: str, sweep: str, job: str = "", since: float = 0.0) -> str:
    """Return the link to the dashboard of a sweep, or of one of its jobs; "" without the URL of Grafana.

    `since`: seconds since the epoch from which on the dashboard shows times; 0: its own default.
    """
    if not url:
        return ""
    told = {"var-sweep": sweep, **({"var-job": job} if job else {})}
    told |= {"from": str(int(since * 1000)), "to": "now"} if since else {}
    return f"{url}/d/monkey-{'job' if job else 'sweep'}?{urlencode(told)}"
