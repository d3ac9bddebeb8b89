"""The verbs, and what `monkey --help` prints of them."""

from __future__ import annotations

#: Every verb by the group under which the help lists it, first those that a researcher uses each day. A verb's module
#: is imported when it is called.
VERBS = {
    "Run": {
        "init": "Create a project: an example spec and training script.",
        "plan": "Show what apply would change.",
        "apply": "Apply the specs, and watch the jobs.",
        "run": "Run one command as a job: monkey run -- CMD.",
    },
    "Look": {
        "status": "Show the state of sweeps, agents and the store.",
        "list": "List jobs, sweeps, providers or instances.",
        "info": "Show the details of a job or a sweep.",
        "logs": "Show the logs of jobs; -f follows.",
        "results": "Show jobs with their metrics, best first.",
        "web": "Show sweeps, curves and logs in a browser.",
        "fetch": "Download the outputs of jobs.",
    },
    "Steer": {
        "pause": "Pause a sweep until it is resumed.",
        "resume": "Resume a paused or cancelled sweep.",
        "cancel": "Cancel a sweep.",
        "retry": "Run failed jobs again.",
    },
    "More": {
        "doctor": "Check the project, store, agents and clouds; suggest fixes.",
        "validate": "Check specs without the store or the network.",
        "schema": "Print the JSON schema of specs, for editors.",
        "sync": "Apply each commit of a branch as it comes.",
        "push": "Upload datasets without running jobs.",
        "history": "Show what was done to a sweep, by whom.",
        "diff": "Show what differs between two jobs or revisions.",
        "compare": "Compare two sweeps or revisions; fail if worse.",
        "metrics": "Show the curves of what jobs logged.",
        "plot": "Draw curves and results in the terminal, or a file.",
        "report": "Write sweeps and curves to one HTML file.",
        "verify": "Check that the store holds what was recorded.",
        "rerun": "Run finished jobs once more; compare with the record.",
        "extend": "Set a later expiry for a sweep.",
        "rollback": "Bring back what an earlier revision wanted.",
        "destroy": "Remove machines and their agents.",
        "notify": "Post results and statuses to the forge, from CI.",
        "trust": "Show your signing key; choose whose sweeps count.",
        "audit": "Compare what exists on machines with what monkey recorded.",
        "backfill": "Send metrics from the store to InfluxDB again.",
        "agent": "Run an agent in the foreground.",
        "completion": "Print the completion script of a shell.",
    },
}
#: What other tools call a verb.
ELSEWHERE = {
    "ls": "status",
    "ps": "status",
    "top": "status",
    "queue": "status",
    "start": "apply",
    "up": "apply",
    "launch": "apply",
    "submit": "apply",
    "stop": "cancel",
    "kill": "cancel",
    "rm": "cancel",
    "delete": "cancel",
    "down": "destroy",
}


def compose_help() -> str:
    """Return what `monkey --help` prints."""
    lines = ["Usage: monkey [-C DIR] VERB …", "", "  Commit a sweep; the machines follow.", ""]
    for group, verbs in VERBS.items():
        lines.append(f"{group}:")
        lines += [f"  {verb:<11} {text}" for verb, text in verbs.items()]
        lines.append("")
    lines += [
        "Options:",
        "  -C DIR      Run as if started in DIR.",
        "  --version   Print the version.",
        "  -h, --help  Print this; `monkey VERB --help` describes a verb.",
        "",
        "First steps: monkey init, monkey plan, monkey apply, monkey results.",
    ]
    return "\n".join(lines) + "\n"
