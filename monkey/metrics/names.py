"""Names of measurements, tags and fields in InfluxDB, for the code that writes, reads or draws them.

`metrics`: what jobs log. Each metric is a float field of its own name, beside the integer field `step`; tags sweep,
job, attempt, host, rank. A series is what one process of one attempt logged.
`jobs`: a point each time that an attempt is claimed or ends; tags sweep, job.
`system`: what a machine is doing; tags host, fleet, agent, and where it is of one alone: job, gpu.
"""

from __future__ import annotations

METRICS, JOBS, SYSTEM = "metrics", "jobs", "system"

SWEEP, JOB, HOST, RANK, ATTEMPT = "sweep", "job", "host", "rank", "attempt"
FLEET_TAG, AGENT, GPU = "fleet", "agent", "gpu"
STEP, TIME = "step", "time"

# Fields of `jobs`; HOST and ATTEMPT are fields there, too.
STATE_FIELD, REASON, EXIT_CODE, SECONDS, NONFINITE = "state", "reason", "exit_code", "seconds", "nonfinite"
#: Values of STATE_FIELD.
RUNNING, SUCCEEDED, FAILED, STOPPED, RELEASED = "running", "succeeded", "failed", "stopped", "released"
#: Before a parameter's name: as text, whatever it is, and as a number where it is one. (A field has one type for ever.)
PARAM, NUMBER = "param_", "number_"
#: Before a metric's name: its last, least and greatest finite value.
FINAL, MIN, MAX = "final_", "min_", "max_"
#: The metric that ranks the sweep's jobs, its last value, and that value so that more is better whatever the goal is.
METRIC, OBJECTIVE, SCORE = "metric", "objective", "score"
#: How many jobs the sweep has.
COUNT = "jobs"

# Fields of `system`.
CPU_SECONDS, CPU_PERCENT = "cpu_seconds", "cpu_percent"
MEMORY_BYTES, MEMORY_PERCENT = "memory_bytes", "memory_percent"
DISK_USED_PERCENT, DISK_READ_BYTES, DISK_WRITE_BYTES = "disk_used_percent", "disk_read_bytes", "disk_write_bytes"
NET_SENT_BYTES, NET_RECEIVED_BYTES = "net_sent_bytes", "net_received_bytes"
GPU_PERCENT, GPU_MEMORY_BYTES = "gpu_percent", "gpu_memory_bytes"
GPU_POWER_WATTS, GPU_TEMPERATURE = "gpu_power_watts", "gpu_temperature"
#: Jobs that run, and the most that did or may at once.
BUSY, SLOTS = "busy", "slots"

#: A metric of such a name gets an underscore behind it: queries could not tell it from the tag or column.
RESERVED = frozenset({STEP, TIME, SWEEP, JOB, HOST, RANK, ATTEMPT})
