"""A session with grpcurl against the real binary, every answer checked.

Usage: grpcurl_session.py PATH_TO_BINARY PATH_TO_GRPCURL
"""

import json
import re
import subprocess
import sys
import uuid

SERVICE = "jungle.v1.RefereeService"
PATIENCE = 30


class Session:
    def __init__(self, grpcurl: str, address: str) -> None:
        self.grpcurl, self.address = grpcurl, address
        self.checks = 0

    def run(self, *arguments: str, token: str = "", data: dict | None = None) -> subprocess.CompletedProcess:
        command = [self.grpcurl, "-plaintext", "-max-time", "10"]
        if token:
            command += ["-H", f"authorization: Bearer {token}"]
        if data is not None:
            command += ["-d", json.dumps(data)]
        return subprocess.run([*command, self.address, *arguments], capture_output=True, text=True, timeout=PATIENCE)

    def call(self, method: str, data: dict, token: str = "") -> dict:
        done = self.run(f"{SERVICE}/{method}", token=token, data=data)
        assert done.returncode == 0, f"{method} {data}: {done.stderr}"
        return json.loads(done.stdout)

    def stream(self, data: dict, token: str = "") -> list[dict]:
        done = self.run(f"{SERVICE}/WatchGame", token=token, data=data)
        assert done.returncode == 0, f"WatchGame {data}: {done.stderr}"
        decoder, rest, messages = json.JSONDecoder(), done.stdout.strip(), []
        while rest:
            message, end = decoder.raw_decode(rest)
            messages.append(message)
            rest = rest[end:].lstrip()
        return messages

    def check(self, what: str, found: object, expected: object) -> None:
        assert found == expected, f"{what}: found {found!r}, expected {expected!r}"
        self.checks += 1
        print(f"ok  {what}: {found!r}")


def play(session: Session) -> None:
    listed = session.run("list").stdout.split()
    expected = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection", SERVICE]
    session.check("list", listed, expected)
    described = session.run("describe", f"{SERVICE}.SubmitMove").stdout
    session.check("describe shows the comments", "Judged in this order" in described, True)
    healthy = session.run("grpc.health.v1.Health/Check", data={})
    session.check("health", json.loads(healthy.stdout), {"status": "SERVING"})

    request = {"request_id": str(uuid.uuid4()), "start_position": "6e/7/3T3/7/7/7/7/7/6P r 0 1"}
    made = session.call("NewGame", request)
    again = session.call("NewGame", request)
    session.check("a repeated NewGame is the same game", again["game"]["gameId"], made["game"]["gameId"])
    session.check("with the same tokens", again["redToken"], made["redToken"])
    session.check("and says so", again.get("replayed"), True)
    game, red, blue = made["game"]["gameId"], made["redToken"], made["blueToken"]

    legal = session.call("LegalMoves", {"game_id": game, "from_square": "d7"})
    moves = [move["fromSquare"] + move["toSquare"] for move in legal["moves"]]
    session.check("the tiger's legal moves", moves, ["d7c7", "d7d6", "d7d8", "d7e7"])
    why = session.call("LegalMoves", {"line": {"start_position": "7/7/5l1/7/7/3LR2/7/7/7 r 0 1"},
                                      "from_square": "d4", "explain": True})
    session.check("explain lists the lion's jumps too", len(why["candidates"]), 6)

    refused = session.call("SubmitMove", {"game_id": game, "from_square": "d7", "to_square": "d9"}, red)["refused"]
    session.check("a refused move names its rule", refused["violation"]["rule"], "RULE_STEP")
    session.check("and its squares", refused["violation"]["squares"], ["d9"])
    wrong = session.run(f"{SERVICE}/SubmitMove", token=blue,
                        data={"game_id": game, "from_square": "g9", "to_square": "g8"})
    session.check("the wrong turn is an error", "Code: FailedPrecondition" in wrong.stderr, True)
    session.check("whose details grpcurl decodes", '"reason":"NOT_YOUR_TURN"' in wrong.stderr.replace(" ", ""), True)

    plies = [(red, "d7", "d8"), (blue, "g9", "g8"), (red, "d8", "d9")]
    for ply, (token, start, end) in enumerate(plies):
        move = {"game_id": game, "request_id": str(uuid.uuid4()), "expected_ply": ply,
                "from_square": start, "to_square": end}
        accepted = session.call("SubmitMove", move, token)["accepted"]
        session.check(f"{start}{end} is accepted at ply", accepted["move"]["ply"], ply)
    session.check("the last move carries the outcome", accepted["outcome"]["reason"], "OUTCOME_REASON_DEN")

    events = [message["event"] for message in session.stream({"game_id": game, "after_sequence": 0})]
    session.check("the stream has each event once", [event["sequence"] for event in events], ["1", "2", "3", "4"])
    session.check("its last carries the outcome", events[-1]["outcome"]["winner"], "SIDE_RED")
    state = session.call("GetGame", {"game_id": game})["game"]
    session.check("GetGame agrees", state["outcome"], events[-1]["outcome"])


def main() -> None:
    binary, grpcurl = sys.argv[1:]
    server = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        said = server.stdout.readline()
        address = re.search(r"listens on (\S+)", said).group(1)
        healthy = subprocess.run([binary, "healthcheck", "--address", address], timeout=PATIENCE)
        session = Session(grpcurl, address)
        session.check("healthcheck", healthy.returncode, 0)
        play(session)
    finally:
        server.terminate()
        code = server.wait(timeout=PATIENCE)
    session.check("SIGTERM ends the server", code, 0)
    print(f"{session.checks} answers checked")


if __name__ == "__main__":
    main()
