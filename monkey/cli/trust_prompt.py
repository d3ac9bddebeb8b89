"""A question before credentials go to an endpoint that only monkey.yaml names; it is asked once for each project."""

from __future__ import annotations

import sys

from monkey.apply.trust.endpoints import (
    check_transport,
    is_trusted,
    list_report_endpoints,
    list_store_endpoints,
    refuse_endpoint,
)
from monkey.apply.trust.known_endpoints import KnownEndpoints
from monkey.ci_run import is_ci
from monkey.cli.terminal.prompts import ask_consent
from monkey.cli.terminal.text import make_printable
from monkey.spec.project.project import Project


def ask_trust(project: Project, *, reports: bool = False) -> None:
    """Ask a user about each endpoint that no user chose yet, and remember those that are trusted.

    `reports`: not only the store's, but InfluxDB's and webhooks', too. `--yes` answers no such question. Raises
    EndpointRefused without a terminal, and if the answer is no.
    """
    for endpoint in [*list_store_endpoints(project), *(list_report_endpoints(project) if reports else ())]:
        check_transport(project, endpoint)
        if is_trusted(project, endpoint):
            continue
        if is_ci() or not sys.stdin.isatty():
            raise refuse_endpoint(project, endpoint)
        where = make_printable(f"{project.root}: credentials for {endpoint.what} would go to {endpoint.url}")
        if not ask_consent(f"{where}.\nmonkey.yaml says so. Trust this endpoint in this project?"):
            raise refuse_endpoint(project, endpoint)
        KnownEndpoints(project.root).add(endpoint.url)
