'use strict';
// Following a game: one unbroken sequence of events over as many connections as it takes.

const { Backoff, RefereeError, duration, explain, status } = require('./referee');

// The referee left an event out, or told one twice. It promises not to.
class SequenceBroken extends Error {}
// The referee does not know the game (any more), for example after a restart in memory.
class GameLost extends Error {}
// Not even a heartbeat came for too long.
class Silence extends Error {}

// Checks that events come as 1, 2, 3 ... without gap or double. `last` is the resume cursor.
class SequenceCheck {
  constructor(last) {
    this.last = last;
  }

  snapshot(sequence) {
    if (this.last !== undefined) {
      throw new SequenceBroken(`a snapshot at ${sequence} in a stream resumed after ${this.last}`);
    }
    this.last = sequence;
  }

  event(sequence) {
    if (this.last === undefined) {
      throw new SequenceBroken(`event ${sequence} came before the snapshot`);
    }
    if (sequence !== this.last + 1) {
      const what = sequence <= this.last ? 'twice' : 'with a gap before it';
      throw new SequenceBroken(`event ${sequence} came ${what}: the last was ${this.last}`);
    }
    this.last = sequence;
  }

  heartbeat(sequence) {
    if (sequence < this.last) {
      throw new SequenceBroken(`a heartbeat says ${sequence}, but event ${this.last} has come`);
    }
  }
}

// Follows a game to its end.
//
// `messages()` yields ['snapshot', Game], then ['event', GameEvent] and ['heartbeat', Heartbeat],
// and returns after the message that carries the outcome. When a stream ends without one it comes
// back with the last sequence seen; the caller notices nothing but a pause.
class Follower {
  constructor(referee, gameId, { heartbeat = 10_000, after } = {}) {
    this.referee = referee;
    this.gameId = gameId;
    this.heartbeat = heartbeat;
    this.seen = new SequenceCheck(after);
    this.cuts = 0; // streams that broke and were resumed
  }

  async *messages() {
    const backoff = new Backoff(this.referee.sleep);
    let broken = false;
    let heard = Date.now();
    for (;;) {
      const request = { game_id: this.gameId, heartbeat: duration(this.heartbeat) };
      if (this.seen.last !== undefined) request.after_sequence = this.seen.last;
      let why = 'it ended without an outcome';
      let retryAfter;
      const stream = this.referee.watch(request);
      // Heartbeats are signs of life: two of them missing means that nobody is there.
      const incoming = untilSilent(stream, 2 * this.heartbeat);
      try {
        for (;;) {
          const { error, done, message } = await incoming.next();
          if (error) throw error;
          if (done) break;
          if (broken) {
            broken = false;
            this.cuts += 1;
            this.referee.log(`the stream goes on after event ${this.seen.last}`);
          }
          backoff.reset();
          heard = Date.now();
          const kind = message.message;
          if (!kind) continue; // something newer than this contract
          const body = message[kind];
          this.seen[kind](body.sequence);
          yield [kind, body];
          if (body.outcome) return;
        }
      } catch (error) {
        if (error instanceof Silence) {
          why = error.message;
          this.referee.connect();
        } else if (error instanceof RefereeError) {
          if (error.code === status.NOT_FOUND) throw new GameLost(error.message);
          if (error.reason === 'BEYOND_HEAD') {
            throw new SequenceBroken(`the referee has lost events: ${error.message}`);
          }
          const passing = error.fateUnknown || error.tryLater;
          if (!passing || Date.now() - heard > this.referee.patience) throw error;
          why = error.message;
          retryAfter = error.retryAfter;
        } else {
          throw error;
        }
      } finally {
        stream.cancel();
      }
      broken = this.seen.last !== undefined;
      this.referee.log(`the stream broke: ${why}; coming back after ${this.seen.last ?? 'nothing'}`);
      await backoff.wait(retryAfter);
    }
  }
}

// Takes a stream's messages one by one: next() gives { message }, { done } or { error }, an error
// being Silence if none comes for `limit` milliseconds.
//
// Only the time spent waiting here counts: while the bot thinks, messages gather in the inbox.
function untilSilent(stream, limit) {
  const inbox = [];
  let wake = () => {};
  const put = (item) => {
    inbox.push(item);
    wake();
  };
  stream.on('data', (message) => put({ message }));
  stream.on('error', (error) => put({ error: explain(error) }));
  stream.on('end', () => put({ done: true }));
  return {
    async next() {
      if (inbox.length === 0) {
        await new Promise((resolve) => {
          const timer = setTimeout(() => {
            put({ error: new Silence(`not a sign of life for ${limit / 1000} s`) });
          }, limit);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        wake = () => {};
      }
      return inbox.shift();
    },
  };
}

module.exports = { Follower, SequenceCheck, SequenceBroken, GameLost, Silence };
