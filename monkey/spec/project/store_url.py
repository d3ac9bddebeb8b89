"""A store's address: a path, or a URL whose query holds its options. One string says all, and goes to every agent.

`store: {url: s3://bucket/prefix, region: eu-west-1}` and `store: s3://bucket/prefix?region=eu-west-1` are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monkey.spec.yaml.mistakes import Mistake, describe_value, suggest_word

#: Where a project has its store that names none.
DEFAULT_STORE = ".monkey/store"
#: Scheme to the options that its URLs take. Never a credential: those come from where the cloud's own tools find them.
STORE_URL_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "s3": ("endpoint", "region", "profile"),
    "gs": ("endpoint",),
    "az": ("endpoint", "account"),
}


#: As scp writes a host and a path; also a scheme with too few slashes.
_COLON = re.compile(r"((?:[\w.-]+@)?[\w.-]{2,}):(?=[/~\w])")


def resolve_store_url(raw: str | Mapping[str, str] | None, root: Path) -> str:
    """Return the one string for what `store:` says in the project at `root`; `find_store_mistakes` found none in it."""
    if raw is None:
        return str(root / DEFAULT_STORE)
    options = {} if isinstance(raw, str) else {key: value for key, value in raw.items() if key != "url"}
    url = raw if isinstance(raw, str) else raw["url"]
    if "://" not in url:
        return str(root / Path(url).expanduser())
    return add_url_options(url, options)


def add_url_options(url: str, options: Mapping[str, str]) -> str:
    """Return `url` with `options` in its query, after those that are there."""
    from urllib.parse import quote, urlencode  # slow to import, and rarely needed

    if not options:
        return url
    query = urlencode(sorted(options.items()), safe=":/@", quote_via=quote)
    return f"{url}{'&' if '?' in url else '?'}{query}"


def find_store_mistakes(raw: Any) -> list[Mistake]:
    """Say what is wrong with `store:`."""
    if isinstance(raw, Mapping):
        return _find_mapping_mistakes(raw)
    if isinstance(raw, str) and raw.strip():
        return [Mistake(("store",), *said)] if (said := _suggest_store_url(raw)) else []
    hint = "write a path, such as .monkey/store, or a URL, such as s3://bucket/prefix"
    return [Mistake(("store",), f"expected a path or a URL, found {describe_value(raw)}", hint)]


def _suggest_store_url(text: str) -> tuple[str, str] | None:
    """Say what a text that reads as a path was probably meant to be, and how that is written."""
    found = _COLON.match(text)
    if found is None or "://" in text:
        return None
    host, rest = found[1], text[found.end() :].lstrip("/")
    url = f"{host}://{rest}" if host in (*STORE_URL_OPTIONS, "ssh") else f"ssh://{host}/{rest}"
    return f"expected a path or a URL, found {text!r}", f"write {url}, or ./{text} for a path"


def _find_mapping_mistakes(raw: Mapping[str, Any]) -> list[Mistake]:
    url = raw.get("url")
    if not isinstance(url, str) or not url.strip():
        return [Mistake(("store",), "expected a mapping with 'url'", "write {url: s3://bucket/prefix, region: …}")]
    scheme = url.partition("://")[0].lower() if "://" in url else ""
    known = STORE_URL_OPTIONS.get(scheme, ())
    found = []
    for key, value in raw.items():
        path = ("store", key)
        if key != "url" and key not in known:
            what = f"a store at {scheme}://" if scheme else "a directory"
            found.append(
                Mistake(path, f"{what} has no option {key!r}", suggest_word(key, known, "options"), on_key=True)
            )
        elif not isinstance(value, str) or not value:
            found.append(Mistake(path, f"expected text, found {describe_value(value)}", "write it in quotes"))
    return found
