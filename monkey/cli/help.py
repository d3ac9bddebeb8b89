"""The verbs, and what `monkey --help` prints of them."""

from __future__ import annotations

#: Every verb by the group under which the help lists it; a verb's module is imported when it is called.
VERBS = {
    "Write": {
        "init": "Start a project: a spec, a training script, and nothing else.",
        "schema": "Print the JSON schema of specs, for editors.",
    },
    "Run": {
        "plan": "Show what apply would do.",
        "apply": "Make it so, and watch.",
        "run": "Run one command as a job: monkey run -- CMD.",
        "push": "Upload the datasets of specs, and run nothing.",
    },
    "Look": {
        "status": "Show how sweeps, agents and the store are doing.",
        "list": "List jobs, sweeps, providers or instances.",
        "info": "Show all about one job or one sweep.",
        "logs": "Show what jobs wrote; -f follows.",
        "results": "Show jobs with their metrics, best first.",
        "fetch": "Bring what jobs made into a directory.",
    },
    "Steer": {
        "cancel": "Stop a sweep, or some of its jobs' work, for good.",
        "pause": "Stop a sweep until it is resumed.",
        "resume": "Go on with a paused sweep.",
        "retry": "Give failed jobs another chance.",
        "extend": "Give a sweep that expires more time.",
        "destroy": "Take machines away.",
    },
    "Machinery": {
        "doctor": "Look at all that monkey needs, and say how to mend it.",
        "metrics": "Send a sweep's metrics to InfluxDB anew: metrics backfill.",
        "audit": "Hold what machines have against what we know of.",
        "agent": "Run an agent here, in the foreground.",
        "completion": "Print the completion script of a shell.",
    },
}


def help_text() -> str:
    """Return what `monkey --help` prints."""
    lines = ["Usage: monkey [-C DIR] VERB …", "", "  Commit a sweep; the machines follow.", ""]
    for group, verbs in VERBS.items():
        lines.append(f"{group}:")
        lines += [f"  {verb:<11} {text}" for verb, text in verbs.items()]
        lines.append("")
    lines += [
        "Options:",
        "  -C DIR      Work as if started in DIR.",
        "  --version   Print the version.",
        "  -h, --help  Print this; `monkey VERB --help` tells about a verb.",
        "",
        "First steps: monkey init, monkey plan, monkey apply, monkey results.",
    ]
    return "\n".join(lines) + "\n"
