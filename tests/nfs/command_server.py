"""In a machine: runs what it is asked, one shell a connection; a line of JSON each way."""

import json
import socket
import subprocess
import threading


def serve(connection: socket.socket) -> None:
    """Answer one request."""
    with connection, connection.makefile("rwb") as file:
        asked = json.loads(file.readline())
        done = subprocess.run(
            ["/bin/bash", "-c", asked["command"]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        answer = {"code": done.returncode, "output": done.stdout.decode(errors="replace")}
        file.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    listener = socket.create_server(("0.0.0.0", 7))
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
