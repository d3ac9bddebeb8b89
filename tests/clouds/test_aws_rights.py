"""What an agent on a machine of AWS's appends and ends, it does by its role; what others write, it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from monkey.errors import StoreError
from monkey.protocol.entries import Claim, ClaimEnd, EndEntry
from monkey.protocol.layout import Keys, spell_number
from monkey.protocol.sweeps.queue_markers import hint_idle, mark_queue
from monkey.protocol.sweeps.revision import Revision
from monkey.protocol.sweeps.sweep_log import append_revision, append_stop
from monkey.protocol.sweeps.sweep_state import SweepState
from monkey.spec.job.job_table import JobTable, ParameterColumn
from monkey.spec.job.recipe import Recipe, SweepSettings
from monkey.store.open import open_store
from monkey.store.store_port import Store
from monkey_stacks.aws import machine_rights
from monkey_stacks.aws.api.naming import name_stack
from tests import services
from tests.clouds.account import REGION, Account, account
from tests.clouds.aws.mends import mend
from tests.clouds.wire import Answer, Call, Wire
from tests.iam import Judge
from tests.loops import Run
from tests.rented.rights import Rights
from tests.signing import SIGNERS

pytestmark = pytest.mark.slow

JOB, KEYS = "0" * 16, Keys("shop")
SETTINGS = SweepSettings(max_retries=0, fail_fast=True)
REVISION = Revision(
    "s",
    Recipe("true", "c" * 64),
    SETTINGS,
    JobTable([JOB], {"x": ParameterColumn([1], [0])}),
)
PREFIX = f"s3://{services.BUCKET}/team"


@pytest.fixture
def rights(clouds_moto: str, tmp_path: Path, require: Callable[[str], str]) -> Iterator[Rights]:
    """Return the rights of a fleet's machines in an account that lets nobody else in."""
    require("iam")

    def judged(wire: Wire, call: Call) -> Answer | None:
        return found.answer(wire, call) or mend(wire, call)

    with Judge() as judge, account(clouds_moto, tmp_path, judged) as made:
        found = Rights(made, judge)
        yield found


@pytest.fixture
def enter(rights: Rights, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes this process a machine: from then on, its keys are those of the fleet's role."""
    aws: Account = rights.account
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    stack = name_stack(PREFIX, "shop", "cloud")

    def become() -> None:
        iam, policy = aws.client("iam"), machine_rights.write_machine_rights(PREFIX, stack, REGION, "aws", {})
        iam.create_role(RoleName=stack.name, AssumeRolePolicyDocument=machine_rights.write_trust())
        iam.put_role_policy(RoleName=stack.name, PolicyName="machine", PolicyDocument=policy)
        keys = rights.admit("i-1", stack.name)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret_key)
        monkeypatch.setenv("AWS_SESSION_TOKEN", str(keys.token))

    return become


def test_an_agent_concludes_and_overwrites_no_order(rights: Rights, enter: Callable[[], None], run: Run) -> None:
    url = f"{PREFIX}?region={REGION}"

    async def with_store(do: Callable[[Store], Awaitable[None]], *, begin: bool = False) -> None:
        store = await open_store(url, begin=begin)
        try:
            await do(store)
        finally:
            await store.close()

    run(with_store(applied, begin=True))
    enter()
    run(with_store(concluded))
    assert rights.refused == []
    run(with_store(forged))
    assert len(rights.refused) >= 6


async def applied(store: Store) -> None:
    await append_revision(store, KEYS, SIGNERS, REVISION, 0)
    await mark_queue(store, KEYS, ["cloud"], "s", 1)


async def concluded(store: Store) -> None:
    """Do what agents do when a job has failed for good, and nothing is left."""
    claim = Claim("cloud/m/0", 1, 1, "s")
    ended = EndEntry(ClaimEnd.FAILED, claim.agent, claim.nonce)
    for k, entry in enumerate((claim.encode(), ended.encode()), 1):
        assert await store.create(KEYS.job_log(JOB) + spell_number(k), entry)
    for _ in range(2):  # the second time as another agent, which was slower
        assert (
            await append_stop(store, KEYS, SIGNERS, SweepState("s"), (JOB, 2))
        ).cancelled == f"fail_fast: job {JOB} failed"
    for _ in range(2):  # the second time as another agent, which lost
        await hint_idle(store, KEYS, "cloud", "s", 1)


async def forged(store: Store) -> None:
    """Try what a job could do with the keys of its machine."""
    first = f"{KEYS.sweep_log('s')}00000001"
    for key in (first, KEYS.marker("cloud", "s", 1), KEYS.beat("lab/m/0"), f"{KEYS.machines}cloud/state/x"):
        with pytest.raises(StoreError):
            await store.put(key, b"{}")
    for key in (first, KEYS.marker("cloud", "s", 1)):
        with pytest.raises(StoreError):
            await store.delete(key)
    for key in (f"{KEYS.sweep_log('s')}00000002", KEYS.marker("cloud", "s", 9), KEYS.idle_hint("lab", "s", 9)):
        with pytest.raises(StoreError):
            await store.create(key, b"{}", durable=False)
