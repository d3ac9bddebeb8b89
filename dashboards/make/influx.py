"""Queries in InfluxQL, which InfluxDB 1.8 and 2 both answer (2 by its mapping of databases to buckets).

Variables are always written with a format (`${sweep:singlequote}`): without one, Grafana escapes a value or not by what
else stands in the query.
"""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef

#: Whichever the reader of a dashboard chose at its top.
DATASOURCE = DataSourceRef(type_val="influxdb", uid="${datasource}")


class InfluxQL(Dataquery, Builder[Dataquery]):
    """A query; the SDK has none for InfluxDB.

    Tables are grouped by one tag at most: Grafana's reader of tables puts the columns of several in no fixed order.
    """

    def __init__(self, query: str, alias: str = "", *, table: bool = False, hide: bool = False) -> None:
        """Ask `query`; `alias` names the series ("$tag_job"), `table` asks for one frame instead of series."""
        self.ref_id = ""
        self._query, self._alias, self._table, self._hide = query, alias, table, hide

    def build(self) -> Dataquery:
        """Return itself."""
        return self

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a dashboard."""
        told: dict[str, Any] = {
            "datasource": DATASOURCE,
            "refId": self.ref_id,
            "rawQuery": True,
            "query": self._query,
            "resultFormat": "table" if self._table else "time_series",
        }
        return told | ({"alias": self._alias} if self._alias else {}) | ({"hide": True} if self._hide else {})


def table(query: str) -> InfluxQL:
    """Return a query for a table."""
    return InfluxQL(query, table=True)


def latest(fields: str, where: str, by: str, measurement: str = "jobs", of: str = "state") -> str:
    """Return the query for the newest point of each `by`, with these of its fields.

    One selector takes the others from the same point: a job that succeeds at its second attempt shows no reason of
    its first.
    """
    return f'SELECT last("{of}") AS "{of}", {fields} FROM "{measurement}" WHERE {where} GROUP BY "{by}"'


def rate(field: str, where: str, fill: str) -> str:
    """Return the query for what a counter of machines grows by in a second, one series for each host.

    The growth is between neighbouring samples: between the last of one piece of time and the next, it would swing with
    how many samples fall into each.
    """
    grown = f'SELECT non_negative_derivative("{field}", 1s) AS "rate" FROM "system" WHERE {where} AND $timeFilter '
    return (
        f'SELECT mean("rate") FROM ({grown}GROUP BY "host") WHERE $timeFilter '
        f'GROUP BY time($__interval), "host" fill({fill})'
    )
