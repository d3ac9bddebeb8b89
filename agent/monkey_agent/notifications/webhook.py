"""Telling people: one POST over HTTP, to a webhook or to Slack, and what its failure means."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from monkey.concurrency import run_detached_call
from monkey.errors import FleetError
from monkey.fleet.secret_values import SecretValues
from monkey.plan.text.credential_forms import mask_credentials
from monkey.spec.project.notify_channel import NotifyChannel
from monkey_agent.notifications.undelivered_notice import UndeliveredNotice

#: Seconds that a server may be silent, and that all of a try may take.
SILENT, WHOLE = 10.0, 30.0
#: Answers of a server that may take it later; what else is no success is its last word.
LATER = (408, 425, 429)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are refused: what is signed for one server is not for another."""

    def redirect_request(self, *_: Any) -> None:
        return None


async def deliver_notice(channel: NotifyChannel, notice: Mapping[str, Any], secrets: SecretValues) -> None:
    """Send a notice. Raises UndeliveredNotice."""
    try:
        values = secrets.get(channel.secrets)
    except FleetError as exc:
        raise UndeliveredNotice(exc.message, final=False) from exc
    url = values[channel.to] if channel.named else channel.to
    if not url.lower().startswith(("http://", "https://")):
        raise UndeliveredNotice(f"expected {channel.to} to be a URL that begins with https://", final=True)
    said = {"text": _plain(notice["text"])} if channel.kind == "slack" else notice
    body = mask_credentials(json.dumps(said, ensure_ascii=False)).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "monkey", "Idempotency-Key": notice["event"]}
    if channel.key:
        signature = hmac.new(values[channel.key].encode(), body, hashlib.sha256).hexdigest()
        headers["X-Monkey-Signature"] = f"sha256={signature}"
    await _post(url, body, headers)


def _plain(text: str) -> str:
    """Escape what Slack would take for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


async def _post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    try:
        await asyncio.wait_for(run_detached_call(_request, url, body, headers), WHOLE)
    except TimeoutError as exc:
        raise UndeliveredNotice(f"no answer within {WHOLE:.0f} s", final=False) from exc
    except UndeliveredNotice:
        raise
    except Exception as exc:  # whatever a server may do to http.client
        raise UndeliveredNotice(f"no answer ({type(exc).__name__})", final=False) from None


def _request(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    try:
        request = urllib.request.Request(url, body, dict(headers), method="POST")
        urllib.request.build_opener(_NoRedirect).open(request, timeout=SILENT).close()
    except urllib.error.HTTPError as exc:
        exc.close()
        final = exc.code < 500 and exc.code not in LATER
        raise UndeliveredNotice(f"it answered {exc.code}", final=final) from None
    except urllib.error.URLError as exc:
        reason = exc.reason
        told = (reason.strerror or type(reason).__name__) if isinstance(reason, OSError) else "not reached"
        raise UndeliveredNotice(told, final=False) from None
    except (http.client.InvalidURL, ValueError, UnicodeError):
        raise UndeliveredNotice("it is no URL that could be reached", final=True) from None
    except (OSError, http.client.HTTPException) as exc:
        raise UndeliveredNotice(f"no answer ({type(exc).__name__})", final=False) from None
