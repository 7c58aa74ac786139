#!/usr/bin/env python3
"""One game between the two example bots, over a bad network, checked and written down.

    python3 clients/play.py --server 127.0.0.1:50051
    python3 clients/play.py --start target/release/jungle-referee

It creates a game, lets the Python bot play Red and the Node bot play Blue, each through a proxy of
its own that cuts the connection once on the way, waits for the end, and checks that

  * both bots have finished, have survived a cut, and report the outcome that GetGame reports;
  * the game's events, read again from the first on, come as 1, 2, 3 ... and end with the outcome;
  * GetGame lists the moves that the events tell.

Then it prints the record of the game. The exit code is 0 only if all of it holds.
Run clients/setup.sh once before.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python"))
import environment

environment.enter()

from follow import Follower  # noqa: E402
from proxy import Proxy  # noqa: E402
from referee import Referee, api, explain, name, nouns  # noqa: E402

BOTS = {
    "red": [sys.executable, str(HERE / "python" / "bot.py")],
    "blue": ["node", str(HERE / "node" / "bot.js")],
}


class Wrong(Exception):
    """What this run was to show does not hold."""


def check(holds, problem):
    if not holds:
        raise Wrong(problem)


def say(text):
    print(text, file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description="One checked game between the two example bots.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--server", metavar="HOST:PORT", help="a server that runs")
    where.add_argument("--start", metavar="BINARY", help="start this server for the game")
    parser.add_argument("--creator-key", default=os.environ.get("JUNGLE_CREATOR_KEY"),
                        help="if the server has one")
    parser.add_argument("--ruleset", default="yeshou", help="a preset's name")
    parser.add_argument("--no-capture-rounds", type=int, default=15, metavar="N",
                        help="drawn after so many rounds without a capture; keeps the game short")
    parser.add_argument("--move-time", type=float, default=5.0, metavar="SECONDS",
                        help="the limit for each move; 0: untimed")
    parser.add_argument("--style", choices=["random", "greedy"], default="random")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--offer-draws", type=float, default=0.1, metavar="P")
    parser.add_argument("--accept-draws", action="store_true")
    parser.add_argument("--red-cut-at-ply", type=int, default=6, metavar="PLY",
                        help="cut Red's connection when this ply is reached")
    parser.add_argument("--blue-cut-after", type=int, default=4000, metavar="BYTES",
                        help="cut Blue's connection when so many bytes have come down it")
    parser.add_argument("--silently", action="store_true",
                        help="cut without a reset: the connection stays open, but nothing passes")
    parser.add_argument("--within", type=float, default=120.0, metavar="SECONDS",
                        help="how long the game may take")
    parser.add_argument("--quiet", action="store_true", help="do not show what the bots log")
    return parser.parse_args()


def start_server(binary):
    """Starts a server on a free port of loopback; returns the process and its address."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JUNGLE_")}
    server = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--log", "warn"],
                              stdout=subprocess.PIPE, text=True, env=environment)
    line = server.stdout.readline()
    if " listens on " not in line:
        server.kill()
        raise Wrong(f"the server did not start: {line!r}")
    return server, line.split()[-1]


def new_game(referee, options):
    request = api.NewGameRequest(labels=["play.py"], external_reference=f"seed {options.seed}")
    request.ruleset.preset = options.ruleset
    request.ruleset.no_capture_rounds = options.no_capture_rounds
    if options.move_time:
        request.time_control.per_move.limit.FromMilliseconds(int(options.move_time * 1000))
    # The first clock starts when both bots are there, however long they take to load.
    request.clock_start.join_window.FromSeconds(60)
    return referee.call("NewGame", request)


def start_bot(side, server, game_id, token, options):
    command = BOTS[side] + [
        "--server", server, "--game", game_id, "--seed", str(options.seed + (side == "blue")),
        "--style", options.style, "--offer-draws", str(options.offer_draws), "--heartbeat", "1",
    ] + ["--accept-draws"] * options.accept_draws
    # The token goes where other users of the machine cannot read it.
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL if options.quiet else None,
                            env={**os.environ, "JUNGLE_TOKEN": token})


def cut_at_ply(referee, game_id, ply, proxy):
    """Watches the game as a spectator and cuts a connection when it has come so far."""
    for kind, state in Follower(referee, game_id).messages():
        if kind != "heartbeat" and state.ply >= ply and not proxy.cuts:
            proxy.cut()


def wait_for(side, bot, deadline):
    """The result that a bot prints, and its exit code 0."""
    try:
        printed, _ = bot.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Wrong(f"{side}'s bot has not finished in time") from None
    check(bot.returncode == 0, f"{side}'s bot exited with {bot.returncode}")
    return json.loads(printed)


def read_log(referee, game_id):
    """All events of the game, from the creation to the outcome; the stream must then end with OK."""
    import grpc
    events = []
    stream = referee.stub.WatchGame(
        api.WatchGameRequest(game_id=game_id, after_sequence=0), timeout=30)
    try:
        for message in stream:
            if message.WhichOneof("message") == "event":
                events.append(message.event)
    except grpc.RpcError as error:
        raise Wrong(f"the log of the game broke off: {explain(error)}") from None
    return events


def verify(game, events, reports, proxies):
    """Raises Wrong if the bots, the state and the log do not agree on everything."""
    outcome = game.outcome
    check(game.HasField("outcome"), "the game has no outcome")
    winner = name(nouns.Side, outcome.winner, "SIDE_").replace("UNSPECIFIED", "NONE")
    truth = {
        "game_id": game.game_id,
        "reason": name(nouns.OutcomeReason, outcome.reason, "OUTCOME_REASON_"),
        "winner": winner,
        "scored": outcome.scored,
        "plies": game.ply,
    }
    for side, report in reports.items():
        for field, value in truth.items():
            check(report[field] == value, f"{side} reports {field} {report[field]}, not {value}")
        # A game that ends before its second ply has not told Blue's bot where it sits.
        seats = (side.upper(), "UNSPECIFIED") if game.ply < 2 else (side.upper(),)
        check(report["seat"] in seats, f"{side}'s bot thinks that it is {report['seat']}")
        check(proxies[side].cuts >= 1, f"{side}'s connection was never cut: choose an earlier moment")
        # The very last call may be cut when the stream has already brought the outcome.
        check(report["cuts"] + report["retries"] >= 1, f"{side}'s bot did not notice its cut")

    sequences = [event.sequence for event in events]
    check(sequences == list(range(1, len(events) + 1)), f"the sequences are {sequences}")
    check(len(events) == game.sequence, f"{len(events)} events, but GetGame says {game.sequence}")
    check(events[0].WhichOneof("kind") == "created", "the first event is not the creation")
    ends = [event.sequence for event in events if event.HasField("outcome")]
    check(ends == [len(events)], f"the outcome is in the events {ends}, not in the last")
    check(events[-1].outcome == outcome, "the last event and GetGame have different outcomes")
    check(events[-1].position == game.position, "the last event and GetGame differ in the position")
    moves = [event.move_made.move for event in events if event.WhichOneof("kind") == "move_made"]
    check(moves == list(game.moves), "the events and GetGame tell different moves")
    check([move.ply for move in moves] == list(range(len(moves))), "the plies are not 0, 1, 2 ...")


def record(game):
    """The game for a reader: header, moves numbered by rounds, end position."""
    ruleset, outcome = game.settings.ruleset, game.outcome
    points = {1.0: "1", 0.5: "1/2", 0.0: "0"}
    result = f"{points[outcome.red_points]}-{points[outcome.blue_points]}"
    winner = {nouns.SIDE_RED: "Red wins", nouns.SIDE_BLUE: "Blue wins"}.get(outcome.winner, "no winner")
    yield f"Game      {game.game_id}"
    yield f"Ruleset   {ruleset.preset} {ruleset.hash}"
    yield f"Start     {game.settings.start_position}"
    yield f"Result    {result} ({winner}{'' if outcome.scored else ', not scored'})"
    yield f"Reason    {name(nouns.OutcomeReason, outcome.reason, 'OUTCOME_REASON_')}"
    yield f"Plies     {game.ply}"
    yield ""
    yield from rounds(game)
    yield ""
    yield f"End       {game.position}"
    yield from board(game.position)


def rounds(game):
    _, to_move, _, first = game.settings.start_position.split()
    number, line = int(first), []
    if to_move == "b":
        line.append("...")
    for move in game.moves:
        line.append(f"{move.from_square}{'x' if move.captured else ''}{move.to_square}")
        if len(line) == 2:
            yield f"{number:3}. {line[0]:6}{line[1]}"
            number, line = number + 1, []
    if line:
        yield f"{number:3}. {line[0]}"


def board(position):
    for rank, row in zip(range(9, 0, -1), position.split()[0].split("/")):
        cells = "".join("." * int(cell) if cell.isdigit() else cell for cell in row)
        yield f"  {rank} {' '.join(cells)}"
    yield "    a b c d e f g"


def play(options, server):
    deadline = time.monotonic() + options.within
    creator = Referee(server, options.creator_key, log=say)
    made = new_game(creator, options)
    game_id = made.game.game_id
    say(f"game {game_id}, seed {options.seed}")

    proxies = {
        "red": Proxy(server, silently=options.silently),
        "blue": Proxy(server, options.blue_cut_after, options.silently),
    }
    spectator = Referee(server, log=say)
    threading.Thread(target=cut_at_ply, daemon=True,
                     args=(spectator, game_id, options.red_cut_at_ply, proxies["red"])).start()
    tokens = {"red": made.red_token, "blue": made.blue_token}
    bots = {}
    try:
        for side, proxy in proxies.items():
            bots[side] = start_bot(side, proxy.address, game_id, tokens[side], options)
        reports = {side: wait_for(side, bot, deadline) for side, bot in bots.items()}
    finally:
        for bot in bots.values():
            if bot.poll() is None:
                bot.kill()
                bot.wait()
        for proxy in proxies.values():
            proxy.close()

    game = creator.call("GetGame", api.GetGameRequest(game_id=game_id)).game
    verify(game, read_log(spectator, game_id), reports, proxies)
    print("\n".join(record(game)))
    for side, report in reports.items():
        say(f"{side}: {report['cuts']} cut(s) survived, {report['retries']} call(s) repeated")
    say(f"checked: {game.sequence} events without gap or double, one outcome for all")


def main():
    options = arguments()
    server, address = None, options.server
    try:
        if options.start:
            server, address = start_server(options.start)
        play(options, address)
    except Wrong as wrong:
        say(f"WRONG: {wrong} (--seed {options.seed})")
        return 1
    finally:
        if server:
            server.terminate()
            server.wait(timeout=20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
