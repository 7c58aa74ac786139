#!/usr/bin/env python3
"""A small bot for the Jungle referee. It plays one seat of one game to the end.

    python3 bot.py --server 127.0.0.1:50051 --game GAME_ID --token TOKEN --style greedy

It logs to standard error and prints one line of JSON, the result, to standard output.
Exit codes: 0 the game has an outcome; 1 an error that repeating does not heal; 2 bad arguments;
3 the referee broke its promise about sequences; 4 the referee has lost the game.

To write a bot of your own, copy this folder and change choose.py.
"""

import argparse
import json
import os
import random
import sys
import time
import uuid

from choose import ServerClock, choose, time_to_think
from follow import Follower, GameLost, SequenceBroken
from referee import Referee, RefereeError, api, name, nouns, seconds


class Bot:
    def __init__(self, referee, game_id, *, side=None, rng=None, style="greedy", accept_draws=False,
                 offer_draws=0.0, think=0.0, heartbeat=10.0, follower=None):
        self.referee = referee
        self.log = referee.log
        self.game_id = game_id
        # A token does not say which seat it is for. If nobody else did, the first move tells.
        self.side = side
        self.rng = rng or random.Random()
        self.style = style
        self.accept_draws = accept_draws
        self.offer_draws = offer_draws
        self.think = think
        self.follower = follower or Follower(referee, game_id, heartbeat)
        self.server_clock = ServerClock()
        self.grace = 0.0
        self.deadline = None  # of the clock of whoever is to move; None if untimed
        self.moved_at = -1  # the last ply that this bot has moved at
        self.answered = None  # the last draw offer that it has answered

    def run(self):
        """Plays until the outcome. Returns the last message: a Game or a GameEvent."""
        for kind, state in self.follower.messages():
            if kind == "heartbeat":
                self.server_clock.learn(state.server_time)
                self.note_clock(state.clock)
                continue
            if kind == "snapshot":
                self.server_clock.learn(state.server_time)
                self.grace = seconds(state.settings.grace)
                if state.your_side:
                    self.learn_side(state.your_side)
            else:
                self.server_clock.learn(state.time)
                if state.WhichOneof("kind") is None:
                    self.log(f"event {state.sequence} is of a kind newer than this bot")
            # From here on it does not matter what has happened: a snapshot and an event both tell
            # the whole state, in fields of the same names.
            self.note_clock(state.clock)
            if state.HasField("outcome"):
                return state
            if state.status == nouns.GAME_STATUS_RUNNING:
                self.answer_offer(state)
                if self.side in (None, state.side_to_move) and state.ply > self.moved_at:
                    self.move()

    def note_clock(self, clock):
        timed = clock.running_side != nouns.SIDE_UNSPECIFIED
        self.deadline = clock.deadline if timed and clock.HasField("deadline") else None

    def time_left(self):
        """Seconds until the flag, the grace left aside; None if untimed."""
        if self.deadline is None:
            return None
        left = self.server_clock.left_until(self.deadline)
        return left and max(0.0, left - self.grace)

    def move(self):
        """Makes a move at the ply that is current now, if it is this bot's turn."""
        refused = set()
        while True:
            question = api.LegalMovesRequest(game_id=self.game_id)
            legal = self.referee.call("LegalMoves", question, self.timeout())
            if self.side not in (None, legal.side_to_move) or legal.ply <= self.moved_at:
                return  # the game has gone on; the stream will tell
            moves = [m for m in legal.moves if (m.from_square, m.to_square) not in refused]
            if not moves:
                if refused:
                    raise RuntimeError("the referee refuses moves that it lists as legal")
                return  # the game is over; the stream will tell
            left = self.time_left()
            pause = time_to_think(self.think, left) if self.side else 0
            move = choose(moves, legal.side_to_move, self.rng, self.style)
            if pause:
                time.sleep(pause)  # an engine would search here, until the pause is over
            request = api.SubmitMoveRequest(
                request_id=str(uuid.uuid4()),  # of this move: every repeat carries the same
                game_id=self.game_id,
                expected_ply=legal.ply,
                from_square=move.from_square,
                to_square=move.to_square,
                offer_draw=self.rng.random() < self.offer_draws,
            )
            try:
                reply = self.referee.call("SubmitMove", request, self.timeout())
            except RefereeError as error:
                if error.reason == "STALE_PLY":
                    self.log(f"ply {legal.ply} is past; looking again")
                    continue
                if error.reason == "NOT_YOUR_TURN":
                    # It is the other seat's turn, so this one is the opposite of the side to move.
                    self.learn_side(3 - legal.side_to_move)
                    return
                if error.reason in ("GAME_OVER", "NOT_STARTED"):
                    return  # the stream will tell
                raise
            self.learn_side(legal.side_to_move)
            if reply.WhichOneof("verdict") == "accepted":
                self.moved_at = legal.ply
                self.log_move(reply, left)
                return
            # A refusal is a verdict, not an error. The same move would be refused again.
            refusal = reply.refused
            rule = name(nouns.Rule, refusal.violation.rule, "RULE_")
            self.log(f"{move.from_square}{move.to_square} refused by {rule}: "
                     f"{refusal.violation.sentence}")
            if refusal.HasField("outcome"):
                return  # this was one refusal too many
            refused.add((move.from_square, move.to_square))

    def timeout(self):
        """A try must not eat up the clock: what gets no answer is better asked again in time."""
        left = self.time_left()
        whole = self.referee.call_timeout
        return whole if left is None else max(0.5, min(whole, left / 3))

    def log_move(self, reply, left):
        move = reply.accepted.move
        taken = name(nouns.Animal, move.captured, "ANIMAL_")
        offer = name(nouns.OfferResult, reply.accepted.offer, "OFFER_RESULT_")
        self.log(
            f"ply {move.ply}: {move.from_square}{move.to_square}"
            + (f" takes {taken}" if move.captured else "")
            + (f", {left:.2f} s were left" if left is not None else "")
            + (f", draw offer: {offer}" if reply.accepted.offer else "")
            + (" (replayed)" if reply.replayed else "")
        )

    def learn_side(self, side):
        if self.side is None:
            self.side = side
            self.log(f"this seat is {name(nouns.Side, side, 'SIDE_')}")

    def answer_offer(self, state):
        """Answers the other side's draw offer, once."""
        if not state.HasField("open_offer") or self.side in (None, state.open_offer.side):
            return
        offer = (state.open_offer.side, state.open_offer.ply)
        if offer == self.answered:
            return
        self.answered = offer
        # After a cut this may be an old state, told again. Answer no offer but the one open now.
        question = api.GetGameRequest(game_id=self.game_id)
        now = self.referee.call("GetGame", question, self.timeout()).game
        if now.open_offer != state.open_offer:
            return
        answer = "DRAW_ANSWER_ACCEPT" if self.accept_draws else "DRAW_ANSWER_DECLINE"
        request = api.AnswerDrawRequest(
            request_id=str(uuid.uuid4()), game_id=self.game_id, answer=answer
        )
        try:
            self.referee.call("AnswerDraw", request, self.timeout())
            self.log(f"draw offer: {answer.removeprefix('DRAW_ANSWER_').lower()}")
        except RefereeError as error:
            if error.reason not in ("NO_OFFER", "GAME_OVER"):
                raise
            self.log("the draw offer is gone")

    def result(self, last):
        outcome = last.outcome
        winner = name(nouns.Side, outcome.winner, "SIDE_")
        return {
            "game_id": self.game_id,
            "seat": name(nouns.Side, self.side or 0, "SIDE_"),
            "reason": name(nouns.OutcomeReason, outcome.reason, "OUTCOME_REASON_"),
            "winner": "NONE" if winner == "UNSPECIFIED" else winner,
            "scored": outcome.scored,
            "plies": last.ply,
            "cuts": self.follower.cuts,
            "retries": self.referee.retries,
        }


def arguments():
    parser = argparse.ArgumentParser(
        description="A bot that plays one seat of one game of the Jungle referee.")
    parser.add_argument("--server", default="127.0.0.1:50051", metavar="HOST:PORT")
    parser.add_argument("--game", required=True, metavar="GAME_ID")
    parser.add_argument("--token", default=os.environ.get("JUNGLE_TOKEN"),
                        help="the seat's token; better given in the environment as JUNGLE_TOKEN, "
                             "where other users of the machine cannot read it")
    parser.add_argument("--side", choices=["red", "blue"],
                        help="the seat's side, if known; else the bot finds out")
    parser.add_argument("--seed", type=int, help="for the same choices again")
    parser.add_argument("--style", choices=["random", "greedy"], default="greedy")
    parser.add_argument("--think", type=float, default=0.0, metavar="SECONDS",
                        help="pretend to think so long about each move, if the clock allows")
    parser.add_argument("--accept-draws", action="store_true", help="else they are declined")
    parser.add_argument("--offer-draws", type=float, default=0.0, metavar="P",
                        help="offer a draw with a move with this probability")
    parser.add_argument("--heartbeat", type=float, default=10.0, metavar="SECONDS",
                        help="1 to 30; two missing ones and the bot reconnects")
    parser.add_argument("--call-timeout", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--patience", type=float, default=120.0, metavar="SECONDS",
                        help="how long to repeat a call that gets no answer")
    options = parser.parse_args()
    if not options.token:
        parser.error("a token is needed: --token or JUNGLE_TOKEN")
    return options


def main():
    options = arguments()
    tag = f"python {options.side or options.game[-6:]}"

    def log(text):
        sys.stderr.write(f"[{tag}] {text}\n")  # one write, so that lines of two bots do not mix

    referee = Referee(options.server, options.token, options.call_timeout, options.patience, log)
    bot = Bot(
        referee,
        options.game,
        side={"red": nouns.SIDE_RED, "blue": nouns.SIDE_BLUE}.get(options.side),
        rng=random.Random(options.seed),
        style=options.style,
        accept_draws=options.accept_draws,
        offer_draws=options.offer_draws,
        think=options.think,
        heartbeat=options.heartbeat,
    )
    try:
        last = bot.run()
    except SequenceBroken as broken:
        log(f"the sequence is broken: {broken}")
        return 3
    except GameLost as lost:
        log(f"the game is lost by the server: {lost}")
        return 4
    except RefereeError as error:
        log(str(error))
        return 4 if error.reason == "NO_SUCH_GAME" else 1
    print(json.dumps(bot.result(last)), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
