"""The worst-case cost of rented machines: how many, for how long, at which price. This module does no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from monkey.spec.job.expires import format_utc_time
from monkey.spec.project.cloud import CloudSettings

#: Seconds of an hour.
SECONDS_PER_HOUR = 3600.0
#: Seconds by which clouds may round the time at which they end machines.
_EXPIRY_TOLERANCE_SECONDS = 120.0


@dataclass(frozen=True)
class RetainedMachines:
    """Machines of today that stay rented after the fleet expires, as their end is later."""

    machines: int
    #: Hours after the fleet expires, in sum over these machines.
    hours: float
    #: When the last of them ends: seconds since the epoch, UTC.
    until: float

    @property
    def counted(self) -> float:
        """Return the hours, rounded up as `round_up_hours` does."""
        return round_up_hours(self.hours)

    def words(self) -> str:
        """Return the words for these machines: "2 machines that keep their end, 2026-12-01 18:00 UTC"."""
        whose = (
            "1 machine that keeps its end" if self.machines == 1 else f"{self.machines} machines that keep their end"
        )
        return f"{whose}, {format_utc_time(self.until)}"


@dataclass(frozen=True)
class FleetCost:
    """The worst-case cost of a fleet's machines: as many as there may be at once, from now until the fleet expires.

    It bounds their rent. The cost of disks, traffic and requests is extra, and so is what was spent already.
    """

    #: Largest number of machines at once, `max_instances`, since `resume` and `retry` ask for more without a plan.
    machines: int
    #: Type of one machine: "g5.xlarge", "g5.xlarge or g4dn.xlarge".
    kind: str
    #: Hours from now until the fleet expires.
    hours: float
    #: When the fleet expires: seconds since the epoch, UTC.
    until: float
    #: USD per hour of one machine, of the dearest kind; None where monkey.yaml does not say.
    price: float | None = None
    #: Whether these are spot machines, which usually cost less.
    spot: bool = False
    #: USD that the worst case must not exceed (`max_cost`); None for no limit.
    limit: float | None = None
    #: Until when today's machines are rented, seconds since the epoch; None where there are none.
    rented: float | None = None
    #: Kinds that have no price, where others do.
    unpriced: tuple[str, ...] = ()
    #: Today's machines that stay for longer than the fleet; None for none.
    kept: RetainedMachines | None = None
    #: Whether an hour of all machines at once is dearer than what was applied last, at the prices of now.
    dearer: bool = False

    @property
    def longer(self) -> bool:
        """Return whether machines of today become rented for longer."""
        return self.rented is not None and self.until - self.rented > _EXPIRY_TOLERANCE_SECONDS

    @property
    def counted(self) -> float:
        """Return the hours, rounded up as `round_up_hours` does."""
        return round_up_hours(self.hours)

    @property
    def total(self) -> float | None:
        """Return the worst case in USD, rounded up to cents; None where the price is not known."""
        if self.price is None:
            return None
        kept = _multiply_cost(1, self.kept.counted, self.price) if self.kept else Decimal(0)
        return float(_multiply_cost(self.machines, self.counted, self.price) + kept)

    @property
    def exceeds(self) -> bool:
        """Return whether there is a limit, and the worst case is above it or unknown."""
        return self.limit is not None and (self.total is None or self.total > self.limit)

    def words(self) -> str:
        """Return the cost in words.

        "at most 4 × g5.xlarge × 12 h × $1.01 = $48.48 until 2026-12-01 18:00 UTC (spot: usually less)"
        """
        terms = f"at most {self.machines} × {self.kind} × {self.counted:g} h"
        until = f"until {format_utc_time(self.until)}"
        if self.price is None or self.total is None:
            of = f" of {' and '.join(self.unpriced)}" if self.unpriced else ""
            kept = f", besides {self.kept.words()}" if self.kept else ""
            return f"{terms} {until}{kept}; what that costs is unknown: monkey.yaml does not say `price:`{of}"
        less, price = " (spot: usually less)" if self.spot else "", format_dollars(self.price)
        owed = float(_multiply_cost(self.machines, self.counted, self.price))
        own = f"{terms} × {price} = {format_dollars(owed)} {until}"
        if self.kept is None:
            return own + less
        kept_cost = float(_multiply_cost(1, self.kept.counted, self.price))
        besides = f"{self.kept.counted:g} h × {price} = {format_dollars(kept_cost)}"
        return f"{own}, and {besides} for {self.kept.words()}: {format_dollars(self.total)}{less}"

    def to_json(self) -> dict[str, Any]:
        """Return the cost as data for JSON, with its total."""
        return {**asdict(self), "total": self.total}


def compute_worst_cost(cloud: CloudSettings, until: float, now: float) -> FleetCost:
    """Return the worst-case cost from now until then (both in seconds since the epoch), as if nothing was rented."""
    return FleetCost(
        machines=cloud.max_instances,
        kind=" or ".join(cloud.types),
        hours=max(0.0, until - now) / SECONDS_PER_HOUR,
        until=until,
        price=cloud.dearest,
        spot=cloud.spot,
        limit=cloud.max_cost,
        unpriced=cloud.unpriced,
    )


def round_up_hours(hours: float) -> float:
    """Return hours rounded up to tenths, as they are shown: a reader who checks the sum gets the same."""
    return math.ceil(round(max(hours, 0.0) * 10, 3)) / 10


def _multiply_cost(machines: int, hours: float, price: float) -> Decimal:
    """Return the product in USD, rounded up to cents."""
    exact = machines * Decimal(str(hours)) * Decimal(str(price))
    return exact.quantize(Decimal("0.01"), ROUND_CEILING)


def sum_costs(costs: Iterable[FleetCost]) -> float | None:
    """Return the sum of the costs in USD; None where the price of one is not known."""
    known = [cost.total for cost in costs]
    return None if None in known else round(sum(each for each in known if each is not None), 2)


def format_total_cost(costs: Iterable[FleetCost]) -> str:
    """Return the sum of the costs in words: "at most $48.48", or "a price that is unknown"."""
    known = sum_costs(costs)
    return "a price that is unknown" if known is None else f"at most {format_dollars(known)}"


def format_rentals(costs: Mapping[str, FleetCost]) -> str:
    """Return the rented machines of each fleet in words: "machines of aws (at most 4 × g5.xlarge × …)"."""
    return ", and ".join(f"machines of {name} ({cost.words()})" for name, cost in costs.items())


def format_dollars(amount: float) -> str:
    """Return an amount of USD as text: "$1,048.40", "$0.0416"."""
    exact = f"{amount:,.4f}"
    return f"${exact[:-2]}{exact[-2:].rstrip('0')}"


@dataclass(frozen=True)
class MachineChange:
    """A change of one machine by an apply."""

    #: "create", "update", "replace" or "delete".
    op: str
    #: Its name in monkey.yaml.
    machine: str
    #: A sentence on why it changes, or what it will be.
    why: str = ""
    #: Why it cannot be inspected, or changed, now; an apply tries again.
    trouble: str = ""
    #: Number of jobs that run there now, and that the change stops: they are queued again.
    stops: int = 0
    #: Whether it is a resource that machines come from, or a part of one, and no machine itself.
    part: bool = False

    @property
    def ends(self) -> bool:
        """Return whether the change stops the jobs that run there."""
        return self.op in ("delete", "replace") and not self.trouble

    @property
    def adds(self) -> bool:
        """Return whether a machine is made."""
        return self.op in ("create", "replace") and not self.part and not self.trouble


def may_raise_rent(cost: FleetCost | None, before: int, after: int, *, made: bool) -> bool:
    """Return whether rented machines are `made`, rented for longer, or allowed to be dearer.

    `before`, `after`: the number of machines.
    """
    return cost is not None and after > 0 and (made or cost.longer or cost.dearer or after > before)
