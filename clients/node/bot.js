#!/usr/bin/env node
'use strict';
// A small bot for the Jungle referee. It plays one seat of one game to the end.
//
//     node bot.js --server 127.0.0.1:50051 --game GAME_ID --token TOKEN --style greedy
//
// It logs to standard error and prints one line of JSON, the result, to standard output.
// Exit codes: 0 the game has an outcome; 1 an error that repeating does not heal; 2 bad arguments;
// 3 the referee broke its promise about sequences; 4 the referee has lost the game.
//
// To write a bot of your own, copy this folder and change lib/choose.js.

const { randomUUID } = require('node:crypto');
const { setTimeout: pauseFor } = require('node:timers/promises');
const { parseArgs } = require('node:util');
const { choose, opposite, randomNumbers, ServerClock, timeToThink } = require('./lib/choose');
const { Follower, GameLost, SequenceBroken } = require('./lib/follow');
const { Referee, RefereeError, milliseconds, word } = require('./lib/referee');

class Bot {
  constructor(referee, gameId, options = {}) {
    this.referee = referee;
    this.log = referee.log;
    this.gameId = gameId;
    // A token does not say which seat it is for. If nobody else did, the first move tells.
    this.side = options.side; // 'SIDE_RED', 'SIDE_BLUE' or undefined
    this.rng = options.rng ?? Math.random;
    this.style = options.style ?? 'greedy';
    this.acceptDraws = options.acceptDraws ?? false;
    this.offerDraws = options.offerDraws ?? 0;
    this.think = options.think ?? 0; // ms
    this.follower = new Follower(referee, gameId, { heartbeat: options.heartbeat });
    this.serverClock = new ServerClock();
    this.grace = 0;
    this.deadline = undefined; // of the clock of whoever is to move; undefined if untimed
    this.movedAt = -1; // the last ply that this bot has moved at
    this.answered = undefined; // the last draw offer that it has answered
  }

  // Plays until the outcome. Returns the last message: a Game or a GameEvent.
  async run() {
    for await (const [kind, state] of this.follower.messages()) {
      if (kind === 'heartbeat') {
        this.serverClock.learn(state.server_time);
        this.noteClock(state.clock);
        continue;
      }
      if (kind === 'snapshot') {
        this.serverClock.learn(state.server_time);
        this.grace = milliseconds(state.settings?.grace);
        if (state.your_side && state.your_side !== 'SIDE_UNSPECIFIED') this.learnSide(state.your_side);
      } else {
        this.serverClock.learn(state.time);
        if (!state.kind) this.log(`event ${state.sequence} is of a kind newer than this bot`);
      }
      // From here on it does not matter what has happened: a snapshot and an event both tell the
      // whole state, in fields of the same names.
      this.noteClock(state.clock);
      if (state.outcome) return state;
      if (state.status === 'GAME_STATUS_RUNNING') {
        await this.answerOffer(state);
        const mayBeMine = !this.side || this.side === state.side_to_move;
        if (mayBeMine && state.ply > this.movedAt) await this.move();
      }
    }
    throw new Error('the stream is over, but the game is not');
  }

  noteClock(clock) {
    const timed = clock && clock.running_side !== 'SIDE_UNSPECIFIED' && clock.deadline;
    this.deadline = timed ? clock.deadline : undefined;
  }

  // Milliseconds until the flag, the grace left aside; undefined if untimed.
  timeLeft() {
    const left = this.deadline && this.serverClock.leftUntil(this.deadline);
    return left === undefined ? undefined : Math.max(0, left - this.grace);
  }

  // Makes a move at the ply that is current now, if it is this bot's turn.
  async move() {
    const refused = new Set();
    for (;;) {
      const question = { game_id: this.gameId };
      const legal = await this.referee.call('LegalMoves', question, this.timeout());
      const mayBeMine = !this.side || this.side === legal.side_to_move;
      if (!mayBeMine || legal.ply <= this.movedAt) return; // it has gone on; the stream will tell
      const moves = legal.moves.filter((m) => !refused.has(m.from_square + m.to_square));
      if (moves.length === 0) {
        if (refused.size) throw new Error('the referee refuses moves that it lists as legal');
        return; // the game is over; the stream will tell
      }
      const left = this.timeLeft();
      const pause = this.side ? timeToThink(this.think, left) : 0;
      const move = choose(moves, legal.side_to_move, this.rng, this.style);
      if (pause) await pauseFor(pause); // an engine would search here, until the pause is over
      const request = {
        request_id: randomUUID(), // of this move: every repeat carries the same
        game_id: this.gameId,
        expected_ply: legal.ply,
        from_square: move.from_square,
        to_square: move.to_square,
        offer_draw: this.rng() < this.offerDraws,
      };
      let reply;
      try {
        reply = await this.referee.call('SubmitMove', request, this.timeout());
      } catch (error) {
        if (error.reason === 'STALE_PLY') {
          this.log(`ply ${legal.ply} is past; looking again`);
          continue;
        }
        if (error.reason === 'NOT_YOUR_TURN') {
          // It is the other seat's turn, so this one is the opposite of the side to move.
          this.learnSide(opposite(legal.side_to_move));
          return;
        }
        if (error.reason === 'GAME_OVER' || error.reason === 'NOT_STARTED') return; // ditto
        throw error;
      }
      this.learnSide(legal.side_to_move);
      if (reply.verdict === 'accepted') {
        this.movedAt = legal.ply;
        this.logMove(reply, left);
        return;
      }
      // A refusal is a verdict, not an error. The same move would be refused again.
      const { violation, outcome } = reply.refused;
      const text = move.from_square + move.to_square;
      this.log(`${text} refused by ${word(violation.rule, 'RULE_')}: ${violation.sentence}`);
      if (outcome) return; // this was one refusal too many
      refused.add(text);
    }
  }

  // A try must not eat up the clock: what gets no answer is better asked again in time.
  timeout() {
    const left = this.timeLeft();
    const whole = this.referee.callTimeout;
    return left === undefined ? whole : Math.max(500, Math.min(whole, left / 3));
  }

  logMove({ accepted, replayed }, left) {
    const { ply, from_square: from, to_square: to, captured } = accepted.move;
    let line = `ply ${ply}: ${from}${to}`;
    if (captured !== 'ANIMAL_UNSPECIFIED') line += ` takes ${word(captured, 'ANIMAL_')}`;
    if (left !== undefined) line += `, ${(left / 1000).toFixed(2)} s were left`;
    const offer = word(accepted.offer, 'OFFER_RESULT_');
    if (offer !== 'UNSPECIFIED') line += `, draw offer: ${offer}`;
    this.log(replayed ? `${line} (replayed)` : line);
  }

  learnSide(side) {
    if (this.side) return;
    this.side = side;
    this.log(`this seat is ${word(side, 'SIDE_')}`);
  }

  // Answers the other side's draw offer, once.
  async answerOffer({ open_offer: offer }) {
    if (!offer || !this.side || offer.side === this.side) return;
    const id = `${offer.side} ${offer.ply}`;
    if (id === this.answered) return;
    this.answered = id;
    // After a cut this may be an old state, told again. Answer no offer but the one that is open now.
    const question = { game_id: this.gameId };
    const { game } = await this.referee.call('GetGame', question, this.timeout());
    if (game.open_offer?.side !== offer.side || game.open_offer.ply !== offer.ply) return;
    const answer = this.acceptDraws ? 'DRAW_ANSWER_ACCEPT' : 'DRAW_ANSWER_DECLINE';
    try {
      const request = { request_id: randomUUID(), game_id: this.gameId, answer };
      await this.referee.call('AnswerDraw', request, this.timeout());
      this.log(`draw offer: ${word(answer, 'DRAW_ANSWER_').toLowerCase()}`);
    } catch (error) {
      if (error.reason !== 'NO_OFFER' && error.reason !== 'GAME_OVER') throw error;
      this.log('the draw offer is gone');
    }
  }

  result({ outcome, ply }) {
    const winner = word(outcome.winner, 'SIDE_');
    return {
      game_id: this.gameId,
      seat: word(this.side, 'SIDE_'),
      reason: word(outcome.reason, 'OUTCOME_REASON_'),
      winner: winner === 'UNSPECIFIED' ? 'NONE' : winner,
      scored: outcome.scored,
      plies: ply,
      cuts: this.follower.cuts,
      retries: this.referee.retries,
    };
  }
}

const USAGE = `usage: node bot.js --game GAME_ID --token TOKEN [options]
  --server HOST:PORT     127.0.0.1:50051 unless given
  --game GAME_ID
  --token TOKEN          the seat's; better given in the environment as JUNGLE_TOKEN, where other
                         users of the machine cannot read it
  --side red|blue        the seat's side, if known; else the bot finds out
  --seed N               for the same choices again
  --style random|greedy  greedy unless given
  --think SECONDS        pretend to think so long about each move, if the clock allows
  --accept-draws         else they are declined
  --offer-draws P        offer a draw with a move with this probability
  --heartbeat SECONDS    1 to 30, 10 unless given; two missing ones and the bot reconnects
  --call-timeout SECONDS 5 unless given
  --patience SECONDS     120 unless given: how long to repeat a call that gets no answer`;

function readArguments() {
  const text = { type: 'string' };
  const { values } = parseArgs({
    options: {
      server: { ...text, default: '127.0.0.1:50051' },
      game: text,
      token: { ...text, default: process.env.JUNGLE_TOKEN },
      side: text,
      seed: text,
      style: { ...text, default: 'greedy' },
      think: { ...text, default: '0' },
      'accept-draws': { type: 'boolean', default: false },
      'offer-draws': { ...text, default: '0' },
      heartbeat: { ...text, default: '10' },
      'call-timeout': { ...text, default: '5' },
      patience: { ...text, default: '120' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const number = (option) => {
    const value = Number(values[option]);
    if (!Number.isFinite(value)) throw new Error(`--${option} takes a number`);
    return value;
  };
  if (!values.game) throw new Error('--game is needed');
  if (!values.token) throw new Error('a token is needed: --token or JUNGLE_TOKEN');
  if (!['random', 'greedy'].includes(values.style)) throw new Error('--style: random or greedy');
  if (values.side && !['red', 'blue'].includes(values.side)) throw new Error('--side: red or blue');
  return {
    server: values.server,
    game: values.game,
    token: values.token,
    side: values.side && `SIDE_${values.side.toUpperCase()}`,
    rng: randomNumbers(values.seed === undefined ? undefined : number('seed')),
    style: values.style,
    acceptDraws: values['accept-draws'],
    offerDraws: number('offer-draws'),
    think: number('think') * 1000,
    heartbeat: number('heartbeat') * 1000,
    callTimeout: number('call-timeout') * 1000,
    patience: number('patience') * 1000,
  };
}

async function main() {
  let options;
  try {
    options = readArguments();
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    return 2;
  }
  const { server, game, token, callTimeout, patience } = options;
  const tag = `node ${options.side ? word(options.side, 'SIDE_').toLowerCase() : game.slice(-6)}`;
  const log = (text) => console.error(`[${tag}] ${text}`);
  const referee = new Referee(server, token, { callTimeout, patience, log });
  const bot = new Bot(referee, game, options);
  try {
    const last = await bot.run();
    console.log(JSON.stringify(bot.result(last)));
    return 0;
  } catch (error) {
    if (error instanceof SequenceBroken) {
      log(`the sequence is broken: ${error.message}`);
      return 3;
    }
    if (error instanceof GameLost || error.reason === 'NO_SUCH_GAME') {
      log(`the game is lost by the server: ${error.message}`);
      return 4;
    }
    log(error instanceof RefereeError ? error.message : error.stack);
    return 1;
  } finally {
    referee.close();
  }
}

if (require.main === module) {
  main().then((code) => {
    process.exitCode = code;
  });
}

module.exports = { Bot };
