"""Following a game: one unbroken sequence of events over as many connections as it takes."""

import queue
import threading
import time

import grpc

from referee import Backoff, api, explain


class SequenceBroken(Exception):
    """The referee left an event out, or told one twice. It promises not to."""


class GameLost(Exception):
    """The referee does not know the game (any more), for example after a restart in memory."""


class Silence(Exception):
    """Not even a heartbeat came for too long."""


class SequenceCheck:
    """Checks that events come as 1, 2, 3 ... without gap or double. `last` is the resume cursor."""

    def __init__(self, last=None):
        self.last = last

    def snapshot(self, sequence):
        if self.last is not None:
            raise SequenceBroken(f"a snapshot at {sequence} in a stream resumed after {self.last}")
        self.last = sequence

    def event(self, sequence):
        if self.last is None:
            raise SequenceBroken(f"event {sequence} came before the snapshot")
        if sequence != self.last + 1:
            what = "twice" if sequence <= self.last else "with a gap before it"
            raise SequenceBroken(f"event {sequence} came {what}: the last was {self.last}")
        self.last = sequence

    def heartbeat(self, sequence):
        if self.last is not None and sequence < self.last:
            raise SequenceBroken(f"a heartbeat says {sequence}, but event {self.last} has come")


class Follower:
    """Follows a game to its end.

    `messages()` yields ("snapshot", Game), then ("event", GameEvent) and ("heartbeat", Heartbeat),
    and returns after the message that carries the outcome. When a stream ends without one it comes
    back with the last sequence seen; the caller notices nothing but a pause.
    """

    def __init__(self, referee, game_id, heartbeat=10.0, after=None):
        self.referee = referee
        self.game_id = game_id
        self.heartbeat = heartbeat
        self.seen = SequenceCheck(after)
        self.cuts = 0  # streams that broke and were resumed

    def messages(self):
        backoff = Backoff(sleep=self.referee.sleep)
        broken = False
        heard = time.monotonic()
        while True:
            request = api.WatchGameRequest(game_id=self.game_id)
            request.heartbeat.FromMilliseconds(int(self.heartbeat * 1000))
            if self.seen.last is not None:
                request.after_sequence = self.seen.last
            retry_after = None
            try:
                # Heartbeats are signs of life: two of them missing means that nobody is there.
                for message in until_silent(self.referee.watch(request), 2 * self.heartbeat):
                    if broken:
                        broken = False
                        self.cuts += 1
                        self.referee.log(f"the stream goes on after event {self.seen.last}")
                    backoff.reset()
                    heard = time.monotonic()
                    kind = message.WhichOneof("message")
                    if kind is None:
                        continue  # something newer than this contract
                    body = getattr(message, kind)
                    getattr(self.seen, kind)(body.sequence)
                    yield kind, body
                    if kind != "heartbeat" and body.HasField("outcome"):
                        return
                why = "it ended without an outcome"
            except Silence as silence:
                why = str(silence)
                self.referee.connect()
            except grpc.RpcError as rpc_error:
                error = explain(rpc_error)
                if error.code == grpc.StatusCode.NOT_FOUND:
                    raise GameLost(str(error)) from None
                if error.reason == "BEYOND_HEAD":
                    raise SequenceBroken(f"the referee has lost events: {error}") from None
                if not (error.fate_unknown or error.try_later):
                    raise error from None
                why, retry_after = str(error), error.retry_after
                if time.monotonic() - heard > self.referee.patience:
                    raise error from None
            broken = self.seen.last is not None
            self.referee.log(f"the stream broke: {why}; coming back after {self.seen.last}")
            backoff.wait(retry_after)


def until_silent(stream, limit):
    """Yields a stream's messages; raises Silence if none comes for `limit` seconds.

    Only the time spent waiting here counts: while the bot thinks, messages gather in the inbox.
    """
    inbox = queue.Queue()
    end = object()

    def pump():
        try:
            for message in stream:
                inbox.put(message)
            inbox.put(end)
        except grpc.RpcError as error:
            inbox.put(error)

    threading.Thread(target=pump, daemon=True).start()
    try:
        while True:
            try:
                item = inbox.get(timeout=limit)
            except queue.Empty:
                raise Silence(f"not a sign of life for {limit:g} s") from None
            if item is end:
                return
            if isinstance(item, grpc.RpcError):
                raise item
            yield item
    finally:
        stream.cancel()
