"""Talking to the referee: the contract, the channel, errors, and calls that are safe to repeat.

`Referee.call` is the part to copy first. A call whose answer did not come may have been carried
out all the same, so it is repeated with the same body, and so with the same request_id, until the
answer is known. The referee answers such a repeat with the first answer again.
"""

import os
import random
import sys
import time
from pathlib import Path

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

# The contract is read from the .proto files as they stand: no generated code to keep up to date.
PROTO_FOLDER = os.environ.get("JUNGLE_PROTO", str(Path(__file__).resolve().parents[2] / "proto"))
sys.path.append(PROTO_FOLDER)
api, services = grpc.protos_and_services("jungle/v1/referee.proto")
nouns = grpc.protos("jungle/v1/game.proto")

DOMAIN = "jungle.v1"

CHANNEL_OPTIONS = [
    # Pings find a dead connection under an open stream. Servers punish clients that ping too often.
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 0),
    # After a cut, come back within seconds, not minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Two bots in one process must not share a connection by accident.
    ("grpc.use_local_subchannel_pool", 1),
]

# The call may have been carried out or not: repeat it unchanged.
FATE_UNKNOWN = {
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNAVAILABLE,
}
# What a library reports when a connection breaks in the middle of an answer. Only without an
# ErrorInfo: with one it is the referee who speaks.
BROKEN_TRANSPORT = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


class RefereeError(Exception):
    """An error status, with what its details say. `reason` is empty if the transport made it."""

    def __init__(self, code, message, reason="", metadata=None, retry_after=None, fields=()):
        self.code = code
        self.message = message
        self.reason = reason
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after  # seconds, or None
        self.fields = list(fields)  # (field, problem) pairs
        super().__init__(f"{code.name} {reason or '(no reason)'}: {message}")

    @property
    def fate_unknown(self):
        return self.code in FATE_UNKNOWN or (not self.reason and self.code in BROKEN_TRANSPORT)

    @property
    def try_later(self):
        """A limit that is likely to pass. A limit of the transport's own has no reason, and stays."""
        return self.code == grpc.StatusCode.RESOURCE_EXHAUSTED and bool(self.reason)


def explain(error):
    """Reads the details (google.rpc.ErrorInfo, RetryInfo, BadRequest) of a grpc.RpcError."""
    reason, metadata, retry_after, fields = "", {}, None, []
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # the details contradict the status: believe the status
        status = None
    for detail in status.details if status else ():
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            detail.Unpack(info)
            if info.domain == DOMAIN:
                reason, metadata = info.reason, info.metadata
        elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            info = error_details_pb2.RetryInfo()
            detail.Unpack(info)
            retry_after = seconds(info.retry_delay)
        elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
            info = error_details_pb2.BadRequest()
            detail.Unpack(info)
            fields = [(v.field, v.description) for v in info.field_violations]
    return RefereeError(error.code(), error.details() or "", reason, metadata, retry_after, fields)


class Backoff:
    """Waits that double, with jitter so that a hundred bots do not come back at once."""

    def __init__(self, first=0.1, most=3.0, sleep=time.sleep):
        self.first, self.most, self.sleep = first, most, sleep
        self.next = first
        self.jitter = random.Random()

    def reset(self):
        self.next = self.first

    def wait(self, at_least=None):
        """Waits for the next span, or for the one that the server named, and a little more."""
        span = self.next * self.jitter.uniform(0.5, 1.0)
        self.next = min(self.next * 2, self.most)
        self.sleep(span if at_least is None else at_least + span)


class Referee:
    """A channel to the referee in the name of one caller: a seat, a creator, or nobody."""

    def __init__(self, server, token=None, call_timeout=5.0, patience=120.0, log=print, stub=None,
                 sleep=time.sleep):
        self.server = server
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.call_timeout = call_timeout
        self.patience = patience  # how long calls are repeated before the error is given up to
        self.log = log
        self.sleep = sleep
        self.retries = 0
        self.channel = None
        self.stub = stub
        if stub is None:
            self.connect()

    def connect(self):
        """Opens a new connection and gives the old one up, with whatever is still open on it.

        A connection can be dead without either end having been told. Then every call on it meets
        the same silence, until the keepalive finds out; a new connection is quicker.
        """
        if self.channel:
            self.channel.close()
        elif self.stub:
            return  # a stub that was handed in has no connection
        self.channel = grpc.insecure_channel(self.server, options=CHANNEL_OPTIONS)
        self.stub = services.RefereeServiceStub(self.channel)

    def call(self, method, request, timeout=None):
        """Makes a call, and repeats it unchanged until its fate is known. Raises RefereeError."""
        backoff = Backoff(sleep=self.sleep)
        give_up = time.monotonic() + self.patience
        while True:
            try:
                return getattr(self.stub, method)(
                    request, timeout=timeout or self.call_timeout, metadata=self.metadata
                )
            except grpc.RpcError as rpc_error:
                error = explain(rpc_error)
            if not (error.fate_unknown or error.try_later) or time.monotonic() >= give_up:
                raise error
            self.retries += 1
            self.log(f"{method}: {error}; repeating it")
            if error.code == grpc.StatusCode.DEADLINE_EXCEEDED:
                self.connect()
            backoff.wait(error.retry_after)

    def watch(self, request):
        """Opens a WatchGame stream. Iterating it raises grpc.RpcError when it breaks."""
        return self.stub.WatchGame(request, metadata=self.metadata)


def seconds(duration):
    """A google.protobuf.Duration or Timestamp as a number of seconds."""
    return duration.seconds + duration.nanos / 1e9


def name(enum, number, prefix=""):
    """An enum's word for a number, without its prefix: name(nouns.Side, 1, "SIDE_") is "RED".

    Enums may grow: a number that this contract does not know is treated as unspecified.
    """
    known = enum.DESCRIPTOR.values_by_number.get(number)
    return known.name.removeprefix(prefix) if known else "UNSPECIFIED"
