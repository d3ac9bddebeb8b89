"""Google's errors in our words, whether its API says them or Pulumi: the one place that knows theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from monkey.errors import FleetError
from monkey.fleet.cloud.http_client import ApiDown, ApiError
from monkey_stacks.error_tables import Word, find_translation, make_row

_LOGIN = "log in again (`gcloud auth application-default login`), or name a key file: GOOGLE_APPLICATION_CREDENTIALS"
_ROLE = "`monkey init --provider gcp` prints what whoever applies needs; an administrator can give it"
_NOBODY = "there are no credentials for Google here"

#: Nothing of this kind has machines now; it may have later.
NO_CAPACITY = make_row(
    r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available|resource pool .{0,40}exhausted|"
    r"VM_MIN_COUNT_NOT_REACHED|stockout",
    "Google has no such machines now",
    "the group goes on trying; allow more zones, name another machine_type or region, or change spot",
)
#: How we say that an answer is none of an API's.
NO_JSON = "expected JSON, found"
#: What Google says → what that means, and what to do. The first that is found counts.
_GCP_ERRORS: Sequence[Word] = [
    NO_CAPACITY,
    make_row(
        rf"{NO_JSON}|<!doctype html|<html",
        "it is not Google's API that answers",
        "does this network want a login first, which a browser shows? Check HTTPS_PROXY; or try again in a minute",
    ),
    make_row(
        r"QUOTA_EXCEEDED|quotaExceeded|Quota '[A-Z0-9_]+' exceeded|quota .{0,80}exceeded|exceeded .{0,40}quota",
        "a quota of the project is used up",
        "ask for more (https://console.cloud.google.com/iam-admin/quotas), lower max_instances, or name another region",
    ),
    make_row(
        r"SERVICE_DISABLED|accessNotConfigured|API has not been used in project|it is disabled",
        "an API is not enabled in the project",
        "enable it: `gcloud services enable compute.googleapis.com iam.googleapis.com "
        "cloudresourcemanager.googleapis.com secretmanager.googleapis.com storage.googleapis.com`",
    ),
    make_row(
        r"invalid_grant|token .{0,60}(?:expired|revoked)|reauth|credentials have expired|ACCESS_TOKEN_EXPIRED",
        "Google's credentials have expired",
        _LOGIN,
    ),
    make_row(
        r"Error 401|: 401\b|UNAUTHENTICATED|invalid authentication credentials|ACCESS_TOKEN_TYPE_UNSUPPORTED",
        "Google does not know these credentials",
        f"`gcloud auth application-default print-access-token` says whether there are any; {_LOGIN}",
    ),
    make_row(
        r"Unable to find credentials|could not find default credentials|default credentials were not found",
        _NOBODY,
        _LOGIN,
    ),
    make_row(
        r"uniform bucket-level access|uniformBucketLevelAccess",
        "the bucket has rights for single objects, and those of machines have conditions",
        "`gcloud storage buckets update gs://BUCKET --uniform-bucket-level-access`",
    ),
    make_row(
        r"Error 403|: 403\b|PERMISSION_DENIED|does not have .{0,80}(?:permission|access)|Required '\S+' permission",
        "Google does not permit it",
        _ROLE,
    ),
    make_row(
        r"Role \(\S+\) does not exist",
        "the role of machines is not in the project",
        "`monkey plan` has the command that makes it",
    ),
    make_row(
        r"could not find image or family|resource 'projects/[^']+/images/[^']+' was not found",
        "there is no such image",
        "name one by image: in monkey.yaml: PROJECT/FAMILY, or projects/P/global/images/NAME",
    ),
    make_row(
        r"Invalid value for field '.{0,40}(?:zone|region)'|Unknown (?:zone|region)|"
        r"resource 'projects/[^']+/(?:zones|regions)/[^/']+' was not found",
        "there is no such region or zone",
        "check region: and zones: in monkey.yaml: `gcloud compute zones list`",
    ),
    make_row(
        r"resource 'projects/[^']+/machineTypes/[^']+' was not found",
        "there is no such type of machines in the region",
        "check machine_type: in monkey.yaml: `gcloud compute machine-types list`",
    ),
    make_row(
        r"resource 'projects/[^']+/(?:networks|subnetworks)/[^']+' was not found",
        "there is no such network in the region",
        "check network: and subnetwork: in monkey.yaml; leave both out for a network of its own",
    ),
    make_row(
        r"rateLimitExceeded|RATE_LIMIT|Error 429|: 429\b|Too Many Requests",
        "Google is asked too often",
        "try again in a minute",
    ),
    make_row(
        r"resourceInUseByAnotherResource|already being used by",
        "something else still uses it",
        "remove what is not ours from there (`monkey audit` lists what is), and try again",
    ),
    make_row(
        r"bucket does not exist|Bucket .{0,80}not found|resource 'b/[^']+' was not found",
        "there is no such bucket",
        "`monkey init --provider gcp --create-bucket` makes it",
    ),
    make_row(
        r"no such host|Name or service not known|Temporary failure in name resolution|Connection refused|"
        r"timed out|Network is unreachable",
        "Google does not answer",
        "does this machine have a network?",
    ),
]


def translate_cloud_error(text: str) -> FleetError | None:
    """Return the error to raise for what Google said, or Pulumi said that it said; None for unknown ones."""
    return find_translation(text, _GCP_ERRORS)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise what requests raise as FleetError."""
    try:
        yield
    except (ApiError, ApiDown) as exc:
        text = _plain(exc)
        raise translate_cloud_error(text) or FleetError(
            f"Google refused: {text}", hint="try again in a while; an apply that it cut off is gone on with"
        ) from exc


def _plain(exc: ApiError | ApiDown) -> str:
    """Return what was said without the JSON around it: its message, and the words by which programs know it."""
    try:
        found = json.loads(getattr(exc, "said", ""))["error"]
        reasons = [each.get("reason", "") for each in found.get("errors", ())]
        reasons += [found.get("status", ""), *(each.get("reason", "") for each in found.get("details", ()))]
        words = ", ".join(dict.fromkeys(filter(None, reasons)))
        return f"Error {getattr(exc, 'status', 0)}: {found['message']}{f' ({words})' if words else ''}"
    except (ValueError, LookupError, TypeError, AttributeError):
        return str(exc)
