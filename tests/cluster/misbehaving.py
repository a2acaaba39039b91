"""A real server of the S3 protocol on loopback, behind a proxy that can be made to misbehave."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BODY = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
SLOW_DOWN = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
)


class Proxy:
    """Passes connections on to another port of loopback, and does to them what `fault` says.

    Attributes
    ----------
    fault : callable
        Given the number of the connection, counted from 0: what to do. ``pass``, ``refuse`` (answer with 503),
        ``reset`` (close it unread), ``cut`` (close it in the midst of the answer, after 20 bytes).
    delay_s : float
        How long every answer is held back.
    gate : callable
        Called with what is sent to the server, piece by piece; it may take its time.

    A connection lasts for one answer, so that there are many.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self.fault = lambda n: "pass"
        self.gate = lambda data: None
        self.delay_s, self.connections, self.faults = 0.0, 0, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no more: whoever connects now is turned away by the system."""
        with suppress(OSError):  # wakes the thread that waits in accept()
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                what, self.connections = self.fault(self.connections), self.connections + 1
                self.faults += what != "pass"
                threading.Thread(target=self._serve, args=(near, what), daemon=True).start()

    def _serve(self, near: socket.socket, what: str) -> None:
        with near, suppress(OSError), _ended(near):
            if what == "reset":
                return
            if what == "refuse":
                near.recv(1 << 16)
                near.sendall(SLOW_DOWN)
                return
            with socket.create_connection(self._target) as far:
                threading.Thread(target=self._pump, args=(near, far), daemon=True).start()
                while data := far.recv(1 << 16):
                    time.sleep(self.delay_s)
                    if what == "cut":
                        near.sendall(data[:20])
                        return
                    near.sendall(data)
                    if not data.startswith(b"HTTP/1.1 100"):
                        far.settimeout(0.1)

    def _pump(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := near.recv(1 << 16):
                self.gate(data)
                far.sendall(data)
        with suppress(OSError):
            far.shutdown(socket.SHUT_WR)


@contextmanager
def _ended(connection: socket.socket) -> Iterator[None]:
    """End a connection for good: to close it would not wake a thread that reads from it."""
    try:
        yield
    finally:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def object_store(bucket: str = "bucket") -> Iterator[Proxy]:
    """Run moto's server, make a bucket, and put a proxy before it."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"aws_access_key_id": "me", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket=bucket)
        proxy = Proxy(port)
        try:
            yield proxy
        finally:
            proxy.close()
    finally:
        server.stop()
