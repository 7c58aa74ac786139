"""Tests of the bot without a server and without waiting: python3 -m unittest"""

import random
import unittest
from types import SimpleNamespace

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc import error_details_pb2, status_pb2

from bot import Bot
from choose import ServerClock, choose, time_to_think
from follow import Follower, GameLost, SequenceBroken, SequenceCheck
from referee import Referee, RefereeError, api, name, nouns

RED, BLUE = nouns.SIDE_RED, nouns.SIDE_BLUE


class FakeRpcError(grpc.RpcError):
    def __init__(self, code, reason="", retry_after=None, **metadata):
        self._code, self._trailers = code, ()
        if reason:
            details = [error_details_pb2.ErrorInfo(
                domain="jungle.v1", reason=reason, metadata=metadata)]
            if retry_after is not None:
                details.append(error_details_pb2.RetryInfo(retry_delay={"seconds": retry_after}))
            status = status_pb2.Status(code=code.value[0], message="why")
            for detail in details:
                packed = Any()
                packed.Pack(detail)
                status.details.append(packed)
            self._trailers = (("grpc-status-details-bin", status.SerializeToString()),)

    def code(self):
        return self._code

    def details(self):
        return "why"

    def trailing_metadata(self):
        return self._trailers


class FakeStream:
    """Yields what it was given; an exception in the list is raised."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        for item in self.items:
            if isinstance(item, Exception):
                raise item
            yield item

    def cancel(self):
        pass


class FakeStub:
    """Answers each call with the next of the answers prepared for its method."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def __getattr__(self, method):
        def call(request, timeout=None, metadata=None):
            self.asked.append((method, type(request).FromString(request.SerializeToString())))
            answer = self.answers[method].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        return call

    def requests(self, method):
        return [request for asked, request in self.asked if asked == method]


def referee(**answers):
    waits = []
    made = Referee("nowhere", "token", log=lambda text: None, stub=FakeStub(**answers),
                   sleep=waits.append)
    made.waits = waits
    return made


def move(text, captures=0):
    return api.LegalMove(from_square=text[:2], to_square=text[2:], captures=captures)


def legal(ply, side, *moves):
    return api.LegalMovesResponse(ply=ply, side_to_move=side, moves=moves)


def event(sequence, **fields):
    return api.WatchGameResponse(event=nouns.GameEvent(sequence=sequence, **fields))


def snapshot(sequence, **fields):
    return api.WatchGameResponse(snapshot=nouns.Game(sequence=sequence, **fields))


DEN = nouns.Outcome(winner=RED, reason=nouns.OUTCOME_REASON_DEN)
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class Choice(unittest.TestCase):
    MOVES = [move("a3a4"), move("g3g4", nouns.ANIMAL_CAT), move("d8d9")]

    def test_greedy_enters_the_den_before_anything_else(self):
        self.assertEqual(choose(self.MOVES, RED, random.Random(1)).to_square, "d9")

    def test_greedy_takes_when_the_den_is_not_the_enemys(self):
        self.assertEqual(choose(self.MOVES, BLUE, random.Random(1)).to_square, "g4")

    def test_random_plays_everything_and_a_seed_repeats_it(self):
        many = [choose(self.MOVES, RED, random.Random(n), "random").to_square for n in range(50)]
        again = [choose(self.MOVES, RED, random.Random(n), "random").to_square for n in range(50)]
        self.assertEqual(set(many), {"a4", "g4", "d9"})
        self.assertEqual(many, again)

    def test_thinking_stops_long_before_the_deadline(self):
        self.assertEqual(time_to_think(10, None), 10)
        self.assertEqual(time_to_think(10, 2.25), 1)
        self.assertEqual(time_to_think(10, 0.1), 0)
        self.assertEqual(time_to_think(0.5, 60), 0.5)

    def test_the_server_clock_believes_the_freshest_stamp(self):
        here = 100.0
        clock = ServerClock(lambda: here)
        stamp = SimpleNamespace
        self.assertIsNone(clock.left_until(stamp(seconds=5, nanos=0)))
        clock.learn(stamp(seconds=1000, nanos=0))
        clock.learn(stamp(seconds=990, nanos=0))  # an old event, told again after a cut
        self.assertEqual(clock.left_until(stamp(seconds=1003, nanos=500_000_000)), 3.5)
        self.assertEqual(clock.left_until(stamp(seconds=999, nanos=0)), 0)


class Sequence(unittest.TestCase):
    def test_an_unbroken_sequence_passes(self):
        check = SequenceCheck()
        check.snapshot(4)
        check.event(5)
        check.heartbeat(5)
        check.event(6)
        self.assertEqual(check.last, 6)

    def test_a_gap_a_double_and_a_step_back_are_found(self):
        for broken in (lambda c: c.event(7), lambda c: c.event(5), lambda c: c.heartbeat(4),
                       lambda c: c.snapshot(5)):
            check = SequenceCheck(5)
            with self.assertRaises(SequenceBroken):
                broken(check)

    def test_a_broken_stream_is_resumed_after_the_last_sequence(self):
        r = referee(WatchGame=[
            FakeStream([snapshot(1), event(2), FakeRpcError(UNAVAILABLE)]),
            FakeRpcError(UNAVAILABLE, "SERVER_STOPPING", sequence="2"),
            FakeStream([event(3)]),
            FakeStream([event(4, outcome=DEN)]),
        ])
        follower = Follower(r, "g")
        seen = [body.sequence for _, body in follower.messages()]
        self.assertEqual(seen, [1, 2, 3, 4])
        self.assertEqual(follower.cuts, 2)
        asked = r.stub.requests("WatchGame")
        self.assertFalse(asked[0].HasField("after_sequence"))
        self.assertEqual([a.after_sequence for a in asked[1:]], [2, 2, 3])

    def test_a_lost_game_and_lost_events_are_told_apart(self):
        lost = referee(WatchGame=[FakeRpcError(grpc.StatusCode.NOT_FOUND, "NO_SUCH_GAME")])
        with self.assertRaises(GameLost):
            list(Follower(lost, "g").messages())
        behind = referee(WatchGame=[FakeRpcError(grpc.StatusCode.OUT_OF_RANGE, "BEYOND_HEAD")])
        with self.assertRaises(SequenceBroken):
            list(Follower(behind, "g", after=9).messages())

    def test_what_is_newer_than_the_contract_is_passed_over(self):
        unknown_message = api.WatchGameResponse.FromString(b"\x7a\x00")  # field 15
        unknown_kind = api.WatchGameResponse()
        unknown_kind.event.ParseFromString(
            nouns.GameEvent(sequence=2, outcome=DEN).SerializeToString() + b"\xfa\x06\x00")  # 111
        r = referee(WatchGame=[FakeStream([snapshot(1), unknown_message, unknown_kind])])
        last = Bot(r, "g").run()
        self.assertIsNone(last.WhichOneof("kind"))
        self.assertEqual(last.outcome.reason, nouns.OUTCOME_REASON_DEN)


class Calls(unittest.TestCase):
    def test_a_call_of_unknown_fate_is_repeated_unchanged(self):
        accepted = api.SubmitMoveResponse(accepted=api.MoveAccepted(sequence=3), replayed=True)
        for code in (UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
            r = referee(SubmitMove=[FakeRpcError(code), FakeRpcError(code), accepted])
            reply = r.call("SubmitMove", api.SubmitMoveRequest(request_id="id", expected_ply=4))
            self.assertTrue(reply.replayed)
            asked = r.stub.requests("SubmitMove")
            self.assertEqual(len(asked), 3)
            self.assertTrue(asked[0] == asked[1] == asked[2])
            self.assertEqual(r.retries, 2)

    def test_a_limit_waits_as_long_as_the_server_says(self):
        full = FakeRpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_WAITING", retry_after=7)
        r = referee(SubmitMove=[full, api.SubmitMoveResponse()])
        r.call("SubmitMove", api.SubmitMoveRequest())
        self.assertEqual(len(r.waits), 1)
        self.assertTrue(7 <= r.waits[0] < 8)

    def test_an_error_that_repeating_does_not_heal_is_raised_with_its_details(self):
        stale = FakeRpcError(grpc.StatusCode.ABORTED, "STALE_PLY", ply="5")
        r = referee(SubmitMove=[stale])
        with self.assertRaises(RefereeError) as caught:
            r.call("SubmitMove", api.SubmitMoveRequest())
        self.assertEqual(caught.exception.reason, "STALE_PLY")
        self.assertEqual(caught.exception.metadata, {"ply": "5"})
        self.assertEqual(r.waits, [])

    def test_unknown_enum_numbers_are_unspecified(self):
        self.assertEqual(name(nouns.OutcomeReason, 1, "OUTCOME_REASON_"), "DEN")
        self.assertEqual(name(nouns.OutcomeReason, 77, "OUTCOME_REASON_"), "UNSPECIFIED")


class Moves(unittest.TestCase):
    RUNNING = {"status": nouns.GAME_STATUS_RUNNING}

    def play(self, r, **options):
        last = Bot(r, "g", **options).run()
        return last, r.stub.requests("SubmitMove")

    def accepted(self):
        return api.SubmitMoveResponse(accepted=api.MoveAccepted())

    def test_a_refused_move_is_not_submitted_again(self):
        refused = api.SubmitMoveResponse()
        refused.refused.violation.rule = nouns.RULE_SEVEN_THREE
        r = referee(
            WatchGame=[FakeStream([snapshot(1, side_to_move=RED, **self.RUNNING),
                                   event(2, ply=1, outcome=DEN)])],
            LegalMoves=[legal(0, RED, move("a3a4"), move("g3g4", nouns.ANIMAL_CAT))] * 2,
            SubmitMove=[refused, self.accepted()],
        )
        _, asked = self.play(r, side=RED)
        self.assertEqual([a.to_square for a in asked], ["g4", "a4"])
        self.assertNotEqual(asked[0].request_id, asked[1].request_id)

    def test_the_seat_is_learned_from_the_first_answer(self):
        not_mine = FakeRpcError(grpc.StatusCode.FAILED_PRECONDITION, "NOT_YOUR_TURN")
        r = referee(
            WatchGame=[FakeStream([
                snapshot(1, side_to_move=RED, **self.RUNNING),
                event(2, ply=1, side_to_move=BLUE, **self.RUNNING),
                event(3, ply=2, side_to_move=RED, **self.RUNNING),
                event(4, ply=3, outcome=DEN)])],
            LegalMoves=[legal(0, RED, move("a3a4")), legal(1, BLUE, move("g7g6"))],
            SubmitMove=[not_mine, self.accepted()],
        )
        bot = Bot(r, "g")
        bot.run()
        self.assertEqual(bot.side, BLUE)
        self.assertEqual([a.expected_ply for a in r.stub.requests("SubmitMove")], [0, 1])

    def test_a_stale_ply_is_looked_at_again(self):
        stale = FakeRpcError(grpc.StatusCode.ABORTED, "STALE_PLY")
        r = referee(
            WatchGame=[FakeStream([snapshot(1, side_to_move=RED, **self.RUNNING),
                                   event(2, ply=3, outcome=DEN)])],
            LegalMoves=[legal(0, RED, move("a3a4")), legal(2, RED, move("a4a5"))],
            SubmitMove=[stale, self.accepted()],
        )
        _, asked = self.play(r, side=RED)
        self.assertEqual([(a.expected_ply, a.to_square) for a in asked], [(0, "a4"), (2, "a5")])

    def test_old_events_told_again_after_a_cut_cause_no_second_move(self):
        r = referee(
            WatchGame=[
                FakeStream([snapshot(1, side_to_move=RED, **self.RUNNING),
                            FakeRpcError(UNAVAILABLE)]),
                FakeStream([event(2, ply=1, side_to_move=BLUE, **self.RUNNING),
                            event(3, ply=1, side_to_move=BLUE, **self.RUNNING),
                            event(4, ply=2, side_to_move=RED, **self.RUNNING),
                            event(5, ply=3, outcome=DEN)]),
            ],
            LegalMoves=[legal(0, RED, move("a3a4")), legal(2, RED, move("a4a5"))],
            SubmitMove=[self.accepted(), self.accepted()],
        )
        _, asked = self.play(r, side=RED)
        self.assertEqual([a.expected_ply for a in asked], [0, 2])

    def test_an_offer_is_answered_once(self):
        offer = nouns.DrawOffer(side=BLUE, ply=3)
        stream = [snapshot(1, side_to_move=BLUE, open_offer=offer, **self.RUNNING),
                  event(2, side_to_move=BLUE, open_offer=offer, **self.RUNNING),
                  event(3, outcome=DEN)]
        for accept, answer in ((False, api.DRAW_ANSWER_DECLINE), (True, api.DRAW_ANSWER_ACCEPT)):
            r = referee(WatchGame=[FakeStream(stream)], AnswerDraw=[api.AnswerDrawResponse()],
                        GetGame=[api.GetGameResponse(game=nouns.Game(open_offer=offer))])
            Bot(r, "g", side=RED, accept_draws=accept).run()
            self.assertEqual([a.answer for a in r.stub.requests("AnswerDraw")], [answer])

    def test_an_old_offer_told_again_does_not_answer_a_newer_one(self):
        old, new = nouns.DrawOffer(side=BLUE, ply=3), nouns.DrawOffer(side=BLUE, ply=5)
        r = referee(
            WatchGame=[FakeStream([
                snapshot(1, side_to_move=BLUE, open_offer=old, **self.RUNNING),
                event(2, outcome=DEN)])],
            GetGame=[api.GetGameResponse(game=nouns.Game(open_offer=new))],
        )
        Bot(r, "g", side=RED, accept_draws=True).run()
        self.assertEqual(r.stub.requests("AnswerDraw"), [])


if __name__ == "__main__":
    unittest.main()
