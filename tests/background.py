"""A server of this process, beside the test that asks it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

POLL_S = 0.01  # until it sees that it is to end; http.server's own half second adds up


@contextmanager
def answering(server: HTTPServer) -> Iterator[str]:
    """Run the server in a thread and yield its address, which ends with a slash."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
