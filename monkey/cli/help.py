"""The verbs, and what `monkey --help` prints of them."""

from __future__ import annotations

#: Every verb by the group under which the help lists it; a verb's module is imported when it is called.
VERBS = {
    "Write": {
        "init": "Create a project: an example spec and training script.",
        "validate": "Check specs without the store or the network.",
        "schema": "Print the JSON schema of specs, for editors.",
    },
    "Run": {
        "plan": "Show what apply would change.",
        "apply": "Apply the specs, and watch the jobs.",
        "run": "Run one command as a job: monkey run -- CMD.",
        "sync": "Apply each commit of a branch as it comes.",
        "push": "Upload datasets without running jobs.",
    },
    "Look": {
        "status": "Show the state of sweeps, agents and the store.",
        "list": "List jobs, sweeps, providers or instances.",
        "info": "Show the details of a job or a sweep.",
        "history": "Show what was done to a sweep, by whom.",
        "diff": "Show what differs between two jobs or revisions.",
        "logs": "Show the logs of jobs; -f follows.",
        "results": "Show jobs with their metrics, best first.",
        "compare": "Compare two sweeps or revisions; fail if worse.",
        "metrics": "Show the curves of what jobs logged.",
        "plot": "Draw curves and results in the terminal, or a file.",
        "web": "Show sweeps, curves and logs in a browser.",
        "report": "Write sweeps and curves to one HTML file.",
        "fetch": "Download the outputs of jobs.",
        "notify": "Post results and statuses to the forge, from CI.",
        "verify": "Check that the store holds what was recorded.",
        "rerun": "Run finished jobs once more; compare with the record.",
    },
    "Steer": {
        "cancel": "Cancel a sweep.",
        "pause": "Pause a sweep until it is resumed.",
        "resume": "Resume a paused or cancelled sweep.",
        "retry": "Run failed jobs again.",
        "extend": "Set a later expiry for a sweep.",
        "rollback": "Bring back what an earlier revision wanted.",
        "destroy": "Remove machines and their agents.",
    },
    "Machinery": {
        "doctor": "Check the project, store, agents and clouds; suggest fixes.",
        "trust": "Show your signing key; choose whose sweeps count.",
        "backfill": "Send metrics from the store to InfluxDB again.",
        "audit": "Compare what exists on machines with what monkey recorded.",
        "agent": "Run an agent in the foreground.",
        "completion": "Print the completion script of a shell.",
    },
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
