"""Writes the dashboards: `python dashboards/generate.py [DIRECTORY]`, beside itself where none is named."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Write one file for each dashboard."""
    sys.path.insert(0, str(HERE.parent))
    with warnings.catch_warnings():
        # Grafana 13 reads this kind as it does the next (v2), Grafana 10 to 12 read no other.
        warnings.filterwarnings("ignore", "Prefer using dashboardv2", DeprecationWarning)
        from dashboards.make import fleet, job, sweep
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    target = Path(sys.argv[1]) if sys.argv[1:] else HERE
    for name, module in (("sweep", sweep), ("job", job), ("fleet", fleet)):
        text = json.dumps(module.build().build(), cls=JSONEncoder, indent=2)
        (target / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
