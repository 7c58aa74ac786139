#!/usr/bin/env python3
"""A tournament back end that creates its games exactly once, however often it crashes.

    python3 clients/backend.py --file games.json --crash-after 200   # exits in the middle
    python3 clients/backend.py --file games.json                     # finishes

The trick is the order: the request ids are written to the file BEFORE the first call. A repeat of
NewGame with the same request_id and the same body returns the same game and the same tokens, so a
back end that does not know how far it came just makes all its calls again.

The file holds tokens once the games are made: it is readable by its owner only.
Run clients/setup.sh once before.
"""

import argparse
import json
import os
import sys
import time
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))
import environment

environment.enter()

from referee import Referee, RefereeError, api  # noqa: E402

CRASHED = 70


def arguments():
    parser = argparse.ArgumentParser(description="Creates the games of a tournament, crash-safe.")
    parser.add_argument("--server", default="127.0.0.1:50051", metavar="HOST:PORT")
    parser.add_argument("--creator-key", default=os.environ.get("JUNGLE_CREATOR_KEY"),
                        help="if the server has one")
    parser.add_argument("--file", type=Path, required=True, metavar="FILE",
                        help="where the plan is written down; the same one finishes it")
    parser.add_argument("--games", type=int, default=500, metavar="N")
    parser.add_argument("--crash-after", type=int, metavar="K",
                        help="crash once K games are written down, with one more made but not noted")
    options = parser.parse_args()
    if options.crash_after is not None and not 0 <= options.crash_after < options.games:
        parser.error("--crash-after must be below --games")
    return options


class Ledger:
    """The plan and what has come of it: one JSON object a line, only ever appended to.

    First the plan, synced to the disk as a whole before any call is made; then a line a game.
    A line that a crash has cut off in the middle says nothing, and its call is made again.
    """

    def __init__(self, path, games):
        self.path = path
        self.made = {}
        lines = self.read()
        if not lines:
            plan = {
                "label": f"tournament-{uuid.uuid4()}",
                "request_ids": [str(uuid.uuid4()) for _ in range(games)],
            }
            # Written beside and renamed: the plan is there as a whole, or not at all.
            beside = path.with_name(path.name + ".new")
            with open(beside, "w", opener=private) as file:
                file.write(json.dumps(plan) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
            lines = [plan]
        self.plan, *made = lines
        for game in made:
            self.made[game["request_id"]] = game
        self.file = open(path, "a", opener=private)

    def read(self):
        if not self.path.exists():
            return []
        text = self.path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(self.path, len(whole.encode()))
        return [json.loads(line) for line in whole.splitlines()]

    def note(self, game):
        self.made[game["request_id"]] = game
        self.file.write(json.dumps(game) + "\n")
        self.file.flush()


def private(path, flags):
    return os.open(path, flags, 0o600)


def request_for(plan, board):
    """The same board gives the same body, always: a repeat with another body is an error."""
    request = api.NewGameRequest(
        request_id=plan["request_ids"][board],
        labels=[plan["label"], "round-1"],
        external_reference=f"{plan['label']}/board-{board + 1}",
        is_match=True,
    )
    request.time_control.per_move.limit.FromSeconds(60)
    request.clock_start.join_window.FromSeconds(24 * 3600)
    return request


def create(referee, ledger, crash_after):
    """Makes every call of the plan; returns the figures."""
    figures = {"created": 0, "replayed": 0, "already noted": 0}
    for board, request_id in enumerate(ledger.plan["request_ids"]):
        reply = referee.call("NewGame", request_for(ledger.plan, board))
        game = {
            "request_id": request_id,
            "game_id": reply.game.game_id,
            "red_token": reply.red_token,
            "blue_token": reply.blue_token,
            "arbiter_token": reply.arbiter_token,
        }
        figures["replayed" if reply.replayed else "created"] += 1
        if crash_after is not None and len(ledger.made) >= crash_after:
            os._exit(CRASHED)  # the game exists, and this process has not noted it
        noted = ledger.made.get(request_id)
        if noted:
            # Not needed to be safe: a real back end would skip what it has noted. Here it shows
            # that the answer is the same.
            figures["already noted"] += 1
            if noted != game:
                sys.exit(f"board {board + 1}: the repeat gave another game or other tokens")
        else:
            ledger.note(game)
    return figures


def listed(referee, label):
    """The games that carry the label, over as many pages as it takes."""
    request = api.ListGamesRequest(label=label, page_size=100)
    games, pages = [], 0
    while True:
        reply = referee.call("ListGames", request)
        games += reply.games
        pages += 1
        if not reply.next_page_token:
            return games, pages
        request.page_token = reply.next_page_token


def main():
    options = arguments()
    ledger = Ledger(options.file, options.games)
    plan = ledger.plan
    wanted = len(plan["request_ids"])
    referee = Referee(options.server, options.creator_key, log=lambda text: print(text, file=sys.stderr))
    print(f"plan: {wanted} games, label {plan['label']}, {len(ledger.made)} noted so far", flush=True)

    start = time.monotonic()
    try:
        figures = create(referee, ledger, options.crash_after)
        took = time.monotonic() - start
        games, pages = listed(referee, plan["label"])
    except RefereeError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    print(f"calls: {', '.join(f'{count} {what}' for what, count in figures.items())}; "
          f"{referee.retries} repeated; {took:.2f} s")
    print(f"listed: {len(games)} games on {pages} pages")

    noted = {game["game_id"] for game in ledger.made.values()}
    references = {game.external_reference for game in games}
    if not (len(games) == len(noted) == len(references) == wanted):
        print(f"WRONG: {len(games)} games, {len(noted)} ids, {len(references)} references; "
              f"{wanted} were wanted")
        return 1
    if {game.game_id for game in games} != noted:
        print("WRONG: the server lists other games than those noted")
        return 1
    print(f"exactly {wanted} games exist, each with the id and the tokens that are noted")
    return 0


if __name__ == "__main__":
    sys.exit(main())
