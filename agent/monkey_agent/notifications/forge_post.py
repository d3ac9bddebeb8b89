"""Telling a forge: the results comment and the status of a sweep's commit, by what `monkey notify` posts with.

The token is a secret of this machine, the forge stands in the sweep's settings, and what is posted is read from the
store. `monkey notify` claims the notice in the same log, so there is one comment.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable
from contextlib import suppress

from monkey.concurrency import run_detached_call
from monkey.errors import FleetError, ForgeError, ForgeRefused, StoreError
from monkey.fleet.secret_values import SecretValues
from monkey.forge.forge_location import ForgeLocation
from monkey.forge.open_forge import open_forge
from monkey.protocol.notices.sweep_notices import Notice, name_forge_way
from monkey.protocol.notices.sweep_outcome import SweepVerdict, judge_notice, judge_sweep
from monkey.protocol.status.store_snapshot import SnapshotReader, SweepView
from monkey.protocol.sweeps.sweep_log import list_revisions
from monkey.results.posting.commit_statuses import set_sweep_statuses
from monkey.results.posting.masked_forge import MaskedForge
from monkey.results.posting.post_end import SweepNews, write_end_comment
from monkey.results.posting.sweep_commits import CommitPulls, is_of_repository, list_commits
from monkey.spec.project.notify_channel import NotifyChannel
from monkey_agent.notifications.undelivered_notice import UndeliveredNotice
from monkey_agent.scheduling.agent_context import AgentContext

#: Seconds that all of a try may take: some requests, each of which the forge may ask to send later.
WHOLE = 300.0
#: Looks at the store, a second apart, until it shows the end: agents know of their own jobs sooner.
_LOOKS = 10


async def publish_notice(at: AgentContext, channel: NotifyChannel, notice: Notice, secrets: SecretValues) -> None:
    """Post a sweep's end or stall to its pull request. Raises UndeliveredNotice."""
    try:
        token = secrets.get([channel.to])[channel.to]
    except FleetError as exc:
        raise UndeliveredNotice(exc.message, final=False) from exc
    over = threading.Event()
    try:
        async with asyncio.timeout(WHOLE):
            await _post(at, channel, notice, token, secrets, over)
    except ForgeError as exc:
        told = f"{exc.message} ({exc.hint})" if exc.hint else exc.message
        raise UndeliveredNotice(told.replace(token, "***"), final=isinstance(exc, ForgeRefused)) from None
    except StoreError as exc:
        raise UndeliveredNotice(exc.message, final=False) from exc
    except TimeoutError:
        raise UndeliveredNotice(f"not all is posted within {WHOLE:.0f} s", final=False) from None
    except Exception as exc:  # whatever a forge may answer; its text could have the token
        raise UndeliveredNotice(f"its answer is not understood ({type(exc).__name__})", final=True) from None
    finally:
        over.set()


async def _post(
    at: AgentContext,
    channel: NotifyChannel,
    notice: Notice,
    token: str,
    secrets: SecretValues,
    over: threading.Event,
) -> None:
    settings, place = channel.forge, f"the secret {channel.to}"
    assert settings is not None  # the revision's shape has it
    view = await _read_sweep(at, notice)
    commits = list_commits(view.state)
    if view.state.revision is None or view.state.revision_at != notice["revision"]:
        return  # another revision came meanwhile, and gets its own
    if not commits or not is_of_repository(commits[-1], settings.repository):
        # Not as if it were posted: a commit that wants the same may come later, and `monkey notify` sees it.
        raise ForgeRefused(f"the sweep is of no commit of {settings.repository}")
    location = ForgeLocation(settings.type, settings.api, settings.repository)

    def wait(seconds: float) -> None:
        if over.wait(seconds):
            raise ForgeError("the try has ended")

    # Not by this machine's variables: they may name another token, for another place.
    opened = open_forge(location, {}, wait, token, place)
    if opened is None:
        raise ForgeRefused("expected all of a forge, found only a part")
    hidden = _gather_hidden([*view.state.revision.settings.machine_secrets], secrets)
    forge = MaskedForge(opened, hidden)
    pulls, way = CommitPulls(forge), name_forge_way(settings.repository)
    news = SweepNews(
        view,
        judge_notice(view, notice),
        await list_revisions(at.store, at.keys, at.signers, notice["sweep"]),
    )
    await run_detached_call(set_sweep_statuses, forge, pulls, *news)
    await write_end_comment(at.store, at.keys, forge, pulls, news, way)


async def _read_sweep(at: AgentContext, notice: Notice) -> SweepView:
    """Return the sweep once the store shows its end, or after some looks anyway. Raises StoreError."""
    reader = SnapshotReader(at.store, at.keys, at.signers, at.clock.wall)
    for look in range(_LOOKS):
        if look:
            await at.clock.sleep(1.0)
        snapshot = await reader.read([notice["sweep"]])
        view = snapshot.sweeps[notice["sweep"]]
        shown = judge_sweep(at.keys.project, snapshot, view, at.clock.wall()).notice
        if notice["kind"] == SweepVerdict.STALLED or (shown is not None and shown["event"] == notice["event"]):
            break
    return view


def _gather_hidden(names: Iterable[str], secrets: SecretValues) -> dict[str, str]:
    """Return variables whose values no text may have: of this process, and secrets that this machine knows."""
    found = dict(os.environ)
    for name in names:
        with suppress(FleetError):
            found[f"SECRET_{name}"] = secrets.get([name])[name]
    return found
