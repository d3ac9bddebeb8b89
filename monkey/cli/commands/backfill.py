"""`monkey backfill`: InfluxDB's copy of a sweep's metrics, made again from the store."""

from __future__ import annotations

import click

from monkey.apply.inspect.resending import BackfillResult, backfill_sweep
from monkey.apply.trust.endpoints import check_endpoints, list_report_endpoints
from monkey.apply.world.world import World
from monkey.cli.session import complete_sweep_names, run_in_world
from monkey.cli.terminal.text import flatten_text, format_plural
from monkey.errors import MonkeyError
from monkey.fleet.secret_values import SecretValues
from monkey.metrics.influx.influx_client import InfluxClient, InfluxDenied


@click.command("backfill")
@click.argument("sweep", shell_complete=complete_sweep_names)
def backfill_command(sweep: str) -> int:
    """Send SWEEP's metrics and job states from the store to the InfluxDB that monkey.yaml names.

    Sends the same points as agents do, so existing points are not doubled. Use it after InfluxDB lost data, or for a
    sweep that is older than InfluxDB. Agents send the metrics of running attempts themselves.
    """
    done = run_in_world(lambda world: _backfill(world, sweep), reports=True)
    sent = f"{format_plural(done.points, 'point')} of {format_plural(done.attempts, 'attempt')} sent"
    click.echo(f"{flatten_text(sweep)}: {sent}.")
    if done.garbage:
        click.echo(f"Lines that were no records were passed over: {done.garbage:,}.")
    if done.refused:
        click.echo(f"InfluxDB refused {format_plural(done.refused, 'point')}: {flatten_text(done.why)}")
    return 1 if done.refused else 0


async def _backfill(world: World, sweep: str) -> BackfillResult:
    influx = world.project.influx
    if influx is None:
        hint = "add `metrics: {influxdb: …}`; docs/metrics.md tells what to write"
        raise MonkeyError("monkey.yaml names no InfluxDB to send metrics to", hint=hint)
    check_endpoints(world.project, list_report_endpoints(world.project))
    try:
        client = InfluxClient(influx, SecretValues().get(influx.secrets))
    except InfluxDenied as exc:
        raise MonkeyError(f"{influx.url} cannot be used: {exc}", hint="`monkey doctor`") from exc
    try:
        return await backfill_sweep(world, sweep, influx, client)
    finally:
        client.close()
