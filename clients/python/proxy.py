"""A TCP proxy on loopback that can cut its connections, as a bad network would."""

import socket
import struct
import threading


class Proxy:
    """Forwards connections to `target`. `cut()` resets all of them; new ones are let through.

    With `cut_after_bytes` it cuts by itself, once, when so many bytes have come from the target.
    With `silently` a cut resets nothing: the connections stay open, but nothing passes any more,
    as when a cable is pulled.
    """

    def __init__(self, target, cut_after_bytes=None, silently=False):
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.cut_after_bytes = cut_after_bytes
        self.silently = silently
        self.cuts = 0  # cuts that hit an open connection
        self.received = 0
        self.open = set()
        self.silent = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            try:
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.open |= {client, server}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, sink, source is server),
                                 daemon=True).start()

    def pump(self, source, sink, from_target):
        try:
            while chunk := source.recv(65536):
                if from_target and self.bytes_came(len(chunk)):
                    self.cut()  # this chunk is lost on the way
                if source not in self.silent:
                    sink.sendall(chunk)
        except OSError:
            pass
        self.drop({source, sink})

    def bytes_came(self, count):
        """True for the one chunk that reaches the limit."""
        with self.lock:
            before, self.received = self.received, self.received + count
            limit = self.cut_after_bytes
            return limit is not None and before < limit <= self.received

    def cut(self):
        """Cuts every connection that is open now."""
        with self.lock:
            victims = self.open - self.silent
            self.cuts += bool(victims)
            if self.silently:
                self.silent |= victims
                return
        self.drop(victims)

    def drop(self, victims):
        with self.lock:
            victims = victims & self.open
            self.open -= victims
        for victim in victims:
            try:
                # Close with a reset, and without waiting for the other end.
                victim.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                victim.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            victim.close()

    def close(self):
        self.listener.close()
        self.drop(set(self.open))
