"""What to play, and how long to think about it. This is the module to put an engine into."""

import time

from referee import nouns, seconds

# The square that wins the game for a side.
ENEMY_DEN = {nouns.SIDE_RED: "d9", nouns.SIDE_BLUE: "d1"}


def choose(moves, side, rng, style="greedy"):
    """One of the legal moves. Greedy: into the den, else take something, else any; random: any."""
    moves = list(moves)
    if style == "greedy":
        into_den = [move for move in moves if move.to_square == ENEMY_DEN[side]]
        taking = [move for move in moves if move.captures]
        moves = into_den or taking or moves
    return rng.choice(moves)


class ServerClock:
    """Estimates the server's time from the stamps in its messages.

    A stamp is always a little old when it arrives, so the estimate that puts the server furthest
    ahead is the best one.
    """

    def __init__(self, monotonic=time.monotonic):
        self.monotonic = monotonic
        self.ahead = None

    def learn(self, timestamp):
        ahead = seconds(timestamp) - self.monotonic()
        self.ahead = ahead if self.ahead is None else max(self.ahead, ahead)

    def left_until(self, timestamp):
        """Seconds until a moment of the server's time; never negative; None if nothing is known."""
        if self.ahead is None:
            return None
        return max(0.0, seconds(timestamp) - (self.monotonic() + self.ahead))


def time_to_think(wanted, left, margin=0.25):
    """How many seconds to think: what is wanted, but at most half of what is left after a margin."""
    if left is None:
        return wanted
    return max(0.0, min(wanted, (left - margin) / 2))
