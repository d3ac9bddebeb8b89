"""Where everything is on a machine of a cloud: for the text that boots it, and for the agent."""

from __future__ import annotations

from pathlib import Path

#: What agents run, and what watches over them: root's alone.
CODE = Path("/opt/monkey")
#: What is the agent's: its directory, its cache, and the home of its user.
STATE_ROOT = Path("/var/lib/monkey")
AGENT = STATE_ROOT / "agent"
#: What systemd caught of the agent; it writes into a log of its own as soon as it can.
CAUGHT = Path("/var/log/monkey-agent.log")
#: In the agent's directory: it left in peace; it left before that, and why; when a heartbeat of its was last
#: acknowledged, in seconds since the boot.
BYE_FILES, GOODBYE, HEARD = "left-in-peace", "goodbye", "heard"
