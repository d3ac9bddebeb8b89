"""`monkey diff`: what differs between two jobs, or two revisions."""

from __future__ import annotations

import click

from monkey.apply.inspect.named_sides import find_sides
from monkey.apply.world.world import World
from monkey.cli.render.differences.difference_lines import format_difference
from monkey.cli.session import check_one_format, complete_sweep_names, json_option, print_pieces, run_in_world
from monkey.cli.terminal.text import detect_terminal, dump_json, join_lines
from monkey.plan.text.credential_forms import mask_credentials
from monkey.results.differences.compare_sides import compare_sides
from monkey.results.differences.difference import Difference


@click.command("diff")
@click.argument("before", metavar="A", shell_complete=complete_sweep_names)
@click.argument("after", metavar="B", shell_complete=complete_sweep_names)
@click.option("--all", "everything", is_flag=True, help="Cut nothing, however long it is.")
@json_option
def diff_command(before: str, after: str, everything: bool, as_json: bool) -> int:
    """Show what differs between the jobs, or the revisions, A and B, and nothing that is equal.

    \b
    A job:       JOB, SWEEP/JOB, or SWEEP@3/JOB of revision 3
    A revision:  SWEEP@3, or SWEEP for its newest one

    Code is compared line by line, datasets by their files. Exits with 0: equal inputs, 1: error, 2: inputs differ.
    Machines, metrics, times and outputs are no inputs.
    """
    check_one_format(**{"--all": everything, "--json": as_json})
    found = run_in_world(lambda world: _compare(world, before, after))
    if as_json:
        click.echo(mask_credentials(dump_json(found.to_json(), indent=2)))
    else:
        print_pieces(join_lines(format_difference(found, detect_terminal(), everything=everything)))
    return 2 if found.has_other_inputs else 0


async def _compare(world: World, before: str, after: str) -> Difference:
    sides = await find_sides(world, await world.reader().read(), (before, after))
    return await compare_sides(world.at, world.keys, *sides)
