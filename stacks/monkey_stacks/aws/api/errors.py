"""AWS's errors in our words, whether they come from its library or through Pulumi: the one place that knows theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from monkey.errors import FleetError
from monkey_stacks.error_tables import Word, find_translation, make_row

_LOGIN = "log in again (`aws sso login`), or renew AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
_POLICY = "`monkey init --provider aws` prints the policy that whoever applies needs; an administrator can attach it"
_QUOTAS = "ask for more (https://console.aws.amazon.com/servicequotas), lower max_instances, or name another region"
_OTHERS = "the group goes on trying; name more types in instance_type, another region, or change spot"


#: Nothing of this kind has machines now; it may have later.
NO_CAPACITY = make_row(
    r"InsufficientInstanceCapacity|do not have sufficient \S+ capacity|no Spot capacity available|"
    r"UnfulfillableCapacity|Insufficient capacity|SpotMaxPriceTooLow|InsufficientHostCapacity",
    "AWS has no such machines now",
    _OTHERS,
)
#: What AWS says → what that means, and what to do. The first that is found counts.
_AWS_ERRORS: Sequence[Word] = [
    NO_CAPACITY,
    make_row(
        r"VcpuLimitExceeded|more vCPU capacity than your current|MaxSpotInstanceCountExceeded|InstanceLimitExceeded|"
        r"(?:Vpc|InternetGateway|VpcEndpoint|SecurityGroups?PerVpc|Address|Volume|Role|Policy\w*)LimitExceeded|"
        r"\bLimitExceeded(?:Exception|Fault)?\b|ServiceQuotaExceeded|maximum number of VPCs",
        "a quota of the account is used up",
        _QUOTAS,
    ),
    make_row(
        r"RequestExpired|RequestTimeTooSkewed|Signature expired|Signature not yet current|RequestInTheFuture",
        "this machine's clock is wrong",
        "set it (NTP): `timedatectl` shows it; AWS takes no request that is minutes old, or of a time to come",
    ),
    make_row(
        r"ExpiredToken|TokenRefreshRequired|token (?:included in the request )?(?:is|has) expired|"
        r"SSO session .{0,80}expired|Token has expired",
        "AWS's credentials have expired",
        _LOGIN,
    ),
    make_row(
        r"InvalidClientTokenId|UnrecognizedClientException|AuthFailure|SignatureDoesNotMatch|InvalidAccessKeyId|"
        r"security token included in the request is invalid",
        "AWS does not know these credentials",
        "check AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: `aws sts get-caller-identity` asks AWS",
    ),
    make_row(
        r"Unable to locate credentials|NoCredentials|no valid credential sources|no EC2 IMDS role found|"
        r"Partial credentials found",
        "there are no credentials for AWS here",
        "log in (`aws configure`, `aws sso login`), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    make_row(
        r"config profile \(.{1,200}\) could not be found", "there is no such profile of AWS here", "check AWS_PROFILE"
    ),
    make_row(
        r"AccessDenied|UnauthorizedOperation|UnauthorizedAccess|not authorized to perform|explicit deny",
        "AWS does not permit it",
        _POLICY,
    ),
    make_row(
        r"Could not connect to the endpoint URL|OptInRequired|not (?:enabled|subscribed) .{0,40}region|no such host|"
        r"InvalidRegion|region .{0,60} is not (?:valid|available)|Invalid endpoint",
        "the region cannot be reached",
        "check region: in monkey.yaml, that it is enabled in the account, and that this machine has a network",
    ),
    make_row(
        r"InvalidAMIID|InvalidAMIId|image id .{0,80}(?:does not|doesn't) exist|ParameterNotFound|InvalidImage",
        "there is no such image in this region",
        "name one of this region by image: in monkey.yaml",
    ),
    make_row(
        r"InvalidInstanceType|instance types do not exist|Invalid instance type",
        "there is no such type of machines in this region",
        "check instance_type: in monkey.yaml: `aws ec2 describe-instance-types` lists them",
    ),
    make_row(
        r"InvalidVpcI[Dd]\.NotFound|InvalidSubnetI[Dd]\.NotFound",
        "there is no such network in this region",
        "check vpc: and subnets: in monkey.yaml; leave both out for a network of its own",
    ),
    make_row(r"Throttl|RequestLimitExceeded|Rate exceeded|SlowDown", "AWS is asked too often", "try again in a minute"),
    make_row(
        r"DependencyViolation|DeleteConflict|ResourceInUse",
        "something else still uses it",
        "remove what is not ours from there (`monkey audit` lists what is), and try again",
    ),
]


def translate_cloud_error(text: str) -> FleetError | None:
    """Return the error to raise for what AWS said, or Pulumi said that it said; None for unknown ones."""
    return find_translation(text, _AWS_ERRORS)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise what AWS's library raises as FleetError, and so what an answer lacks: read answers within this."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (ResponseParserError, KeyError) as exc:
        said = f"its answer has no {exc}" if isinstance(exc, KeyError) else str(exc).partition("\n")[0]
        raise _not_aws(said) from exc
    except (ClientError, BotoCoreError) as exc:
        word = read_error_code(exc)
        # AWS has words for all that it refuses: the library makes up these where there are none.
        if word == "Unknown" or word.isdecimal():
            raise _not_aws(str(exc)) from exc
        said = _own(exc, word)
        raise translate_cloud_error(said) or FleetError(
            f"AWS refused: {said}", hint="try again in a while; an apply that it cut off is gone on with"
        ) from exc


def _own(exc: Exception, word: str) -> str:
    """Return AWS's own words, without those of its library around them but for which call it was."""
    answer = getattr(exc, "response", {}).get("Error", {})
    if word and answer.get("Message"):
        return f"{word} ({getattr(exc, 'operation_name', '')}): {answer['Message']}"
    return f"{word}: {exc}" if word else str(exc)


def refuse_pages(http_response: Any, **_: Any) -> None:
    """Raise, within `translate_errors`, for a page for people: the library takes some of these for a success."""
    from botocore.parsers import ResponseParserError

    if http_response.content[:100].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise ResponseParserError(f"{http_response.status_code}, and a page for people")


def _not_aws(said: str) -> FleetError:
    return FleetError(
        f"it is not AWS that answers: {said[:300].rstrip(' :')}",
        hint="does this network want a login first, which a browser shows? Check HTTPS_PROXY, AWS_ENDPOINT_URL, and "
        "region: in monkey.yaml; or try again in a minute",
    )


def read_error_code(exc: Exception) -> str:
    """Return AWS's own word for an error of its library; "" for one that did not come from AWS."""
    return str(getattr(exc, "response", {}).get("Error", {}).get("Code", ""))
