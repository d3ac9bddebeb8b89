"""The lab's own machines, over OpenSSH's client: no root, no docker, no inbound port but sshd's."""
