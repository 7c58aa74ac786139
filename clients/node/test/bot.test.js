'use strict';
// Tests of the bot without a server and without waiting: node --test

const assert = require('node:assert/strict');
const { EventEmitter } = require('node:events');
const { test } = require('node:test');
const grpc = require('@grpc/grpc-js');
const { Bot } = require('../bot');
const { choose, randomNumbers, ServerClock, timeToThink } = require('../lib/choose');
const { Follower, GameLost, SequenceBroken, SequenceCheck } = require('../lib/follow');
const { contract, details, Referee } = require('../lib/referee');

const RED = 'SIDE_RED';
const BLUE = 'SIDE_BLUE';
const RUNNING = { status: 'GAME_STATUS_RUNNING' };
const DEN = { winner: RED, reason: 'OUTCOME_REASON_DEN' };

// What a message looks like once it has travelled.
function travelled(type, message) {
  const definition = contract[`jungle.v1.${type}`];
  return definition.deserialize(definition.serialize(message));
}

function failure(code, reason, retryAfterSeconds) {
  const error = Object.assign(new Error('why'), { code, details: 'why' });
  error.metadata = new grpc.Metadata();
  const pack = (type, message) => ({
    type_url: `type.googleapis.com/${type}`,
    value: details[type].serialize(message),
  });
  if (reason) {
    const packed = [pack('google.rpc.ErrorInfo', { reason, domain: 'jungle.v1', metadata: {} })];
    if (retryAfterSeconds) {
      const delay = { retry_delay: { seconds: retryAfterSeconds, nanos: 0 } };
      packed.push(pack('google.rpc.RetryInfo', delay));
    }
    const status = details['google.rpc.Status'].serialize({ code, message: 'why', details: packed });
    error.metadata.set('grpc-status-details-bin', status);
  }
  return error;
}

// Emits what it was given: messages, then an error or the end.
function stream(...items) {
  const emitter = new EventEmitter();
  emitter.cancel = () => {};
  setImmediate(() => {
    for (const item of items) emitter.emit(item instanceof Error ? 'error' : 'data', item);
    emitter.emit('end');
  });
  return emitter;
}

// Answers each call with the next of the answers prepared for its method.
function fake(answers) {
  const asked = [];
  const waits = [];
  const client = {};
  for (const [method, prepared] of Object.entries(answers)) {
    client[method] = (request, metadata, options, done) => {
      const copy = travelled(`${method}Request`, request);
      asked.push([method, copy]);
      const answer = prepared.shift();
      if (method === 'WatchGame') return stream(...answer);
      if (answer instanceof Error) done(answer);
      else done(null, travelled(`${method}Response`, answer));
      return undefined;
    };
  }
  const referee = new Referee('nowhere', 'token', {
    client,
    log: () => {},
    sleep: async (ms) => waits.push(ms),
  });
  const requests = (method) => asked.filter(([name]) => name === method).map(([, copy]) => copy);
  return { referee, requests, waits };
}

const event = (sequence, fields) =>
  travelled('WatchGameResponse', { event: { sequence, ply: 0, ...fields } });
const snapshot = (sequence, fields) =>
  travelled('WatchGameResponse', { snapshot: { sequence, ply: 0, ...fields } });
const move = (text, captures) => ({
  from_square: text.slice(0, 2),
  to_square: text.slice(2),
  captures: captures ?? 'ANIMAL_UNSPECIFIED',
});
const legal = (ply, side_to_move, ...moves) => ({ ply, side_to_move, moves });
const ACCEPTED = { accepted: { move: { ply: 0, from_square: 'a3', to_square: 'a4' } } };

const MOVES = [move('a3a4'), move('g3g4', 'ANIMAL_CAT'), move('d8d9')];

test('greedy enters the den before anything else, then takes', () => {
  assert.equal(choose(MOVES, RED, randomNumbers(1)).to_square, 'd9');
  assert.equal(choose(MOVES, BLUE, randomNumbers(1)).to_square, 'g4');
});

test('random plays everything, and a seed repeats it', () => {
  const play = () =>
    Array.from({ length: 50 }, (_, n) => choose(MOVES, RED, randomNumbers(n), 'random').to_square);
  assert.deepEqual(new Set(play()), new Set(['a4', 'g4', 'd9']));
  assert.deepEqual(play(), play());
});

test('thinking stops long before the deadline', () => {
  assert.equal(timeToThink(10_000, undefined), 10_000);
  assert.equal(timeToThink(10_000, 2250), 1000);
  assert.equal(timeToThink(10_000, 100), 0);
  assert.equal(timeToThink(500, 60_000), 500);
});

test('the server clock believes the freshest stamp', () => {
  const clock = new ServerClock(() => 100);
  const stamp = (seconds, nanos = 0) => ({ seconds, nanos });
  assert.equal(clock.leftUntil(stamp(5)), undefined);
  clock.learn(stamp(1000));
  clock.learn(stamp(990)); // an old event, told again after a cut
  assert.equal(clock.leftUntil(stamp(1003, 500_000_000)), 3500);
  assert.equal(clock.leftUntil(stamp(999)), 0);
});

test('an unbroken sequence passes', () => {
  const check = new SequenceCheck();
  check.snapshot(4);
  check.event(5);
  check.heartbeat(5);
  check.event(6);
  assert.equal(check.last, 6);
});

test('a gap, a double and a step back are found', () => {
  for (const [kind, sequence] of [['event', 7], ['event', 5], ['heartbeat', 4], ['snapshot', 5]]) {
    assert.throws(() => new SequenceCheck(5)[kind](sequence), SequenceBroken);
  }
});

test('a broken stream is resumed after the last sequence', async () => {
  const { referee, requests } = fake({
    WatchGame: [
      [snapshot(1), event(2), failure(grpc.status.UNAVAILABLE)],
      [failure(grpc.status.UNAVAILABLE, 'SERVER_STOPPING')],
      [event(3)],
      [event(4, { outcome: DEN })],
    ],
  });
  const follower = new Follower(referee, 'g');
  const seen = [];
  for await (const [, body] of follower.messages()) seen.push(body.sequence);
  assert.deepEqual(seen, [1, 2, 3, 4]);
  assert.equal(follower.cuts, 2);
  const asked = requests('WatchGame');
  assert.equal(asked[0]._after_sequence, undefined);
  assert.deepEqual(asked.slice(1).map((request) => request.after_sequence), [2, 2, 3]);
});

test('a lost game and lost events are told apart', async () => {
  const drain = async (answers, after) => {
    const { referee } = fake({ WatchGame: [answers] });
    for await (const message of new Follower(referee, 'g', { after }).messages()) void message;
  };
  await assert.rejects(drain([failure(grpc.status.NOT_FOUND, 'NO_SUCH_GAME')]), GameLost);
  await assert.rejects(drain([failure(grpc.status.OUT_OF_RANGE, 'BEYOND_HEAD')], 9), SequenceBroken);
});

test('what is newer than the contract is passed over', async () => {
  const definition = contract['jungle.v1.WatchGameResponse'];
  const unknownMessage = definition.deserialize(Buffer.from([0x7a, 0x00])); // field 15
  const known = contract['jungle.v1.GameEvent'].serialize({ sequence: 2, outcome: DEN });
  const body = Buffer.concat([known, Buffer.from([0xfa, 0x06, 0x00])]); // field 111
  const unknownKind = definition.deserialize(
    Buffer.concat([Buffer.from([0x12, body.length]), body]),
  );
  const { referee } = fake({ WatchGame: [[snapshot(1), unknownMessage, unknownKind]] });
  const last = await new Bot(referee, 'g').run();
  assert.equal(last.kind, undefined);
  assert.equal(last.outcome.reason, 'OUTCOME_REASON_DEN');
});

test('a call of unknown fate is repeated unchanged', async () => {
  for (const code of ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED']) {
    const fault = () => failure(grpc.status[code]);
    const { referee, requests } = fake({ SubmitMove: [fault(), fault(), ACCEPTED] });
    await referee.call('SubmitMove', { request_id: 'id', expected_ply: 4 });
    const asked = requests('SubmitMove');
    assert.equal(asked.length, 3);
    assert.deepEqual(asked[0], asked[1]);
    assert.deepEqual(asked[0], asked[2]);
    assert.equal(referee.retries, 2);
  }
});

test('a limit waits as long as the server says', async () => {
  const full = failure(grpc.status.RESOURCE_EXHAUSTED, 'TOO_MANY_WAITING', 7);
  const { referee, waits } = fake({ SubmitMove: [full, ACCEPTED] });
  await referee.call('SubmitMove', {});
  assert.equal(waits.length, 1);
  assert.ok(waits[0] >= 7000 && waits[0] < 8000);
});

test('an error that repeating does not heal is thrown with its reason', async () => {
  const { referee, waits } = fake({ SubmitMove: [failure(grpc.status.ABORTED, 'STALE_PLY')] });
  await assert.rejects(referee.call('SubmitMove', {}), { reason: 'STALE_PLY' });
  assert.deepEqual(waits, []);
});

test('a refused move is not submitted again', async () => {
  const refused = { refused: { violation: { rule: 'RULE_SEVEN_THREE' } } };
  const both = legal(0, RED, move('a3a4'), move('g3g4', 'ANIMAL_CAT'));
  const { referee, requests } = fake({
    WatchGame: [
      [snapshot(1, { side_to_move: RED, ...RUNNING }), event(2, { ply: 1, outcome: DEN })],
    ],
    LegalMoves: [both, both],
    SubmitMove: [refused, ACCEPTED],
  });
  await new Bot(referee, 'g', { side: RED }).run();
  const asked = requests('SubmitMove');
  assert.deepEqual(asked.map((request) => request.to_square), ['g4', 'a4']);
  assert.notEqual(asked[0].request_id, asked[1].request_id);
});

test('the seat is learned from the first answer', async () => {
  const { referee, requests } = fake({
    WatchGame: [
      [
        snapshot(1, { side_to_move: RED, ...RUNNING }),
        event(2, { ply: 1, side_to_move: BLUE, ...RUNNING }),
        event(3, { ply: 2, side_to_move: RED, ...RUNNING }),
        event(4, { ply: 3, outcome: DEN }),
      ],
    ],
    LegalMoves: [legal(0, RED, move('a3a4')), legal(1, BLUE, move('g7g6'))],
    SubmitMove: [failure(grpc.status.FAILED_PRECONDITION, 'NOT_YOUR_TURN'), ACCEPTED],
  });
  const bot = new Bot(referee, 'g');
  await bot.run();
  assert.equal(bot.side, BLUE);
  assert.deepEqual(requests('SubmitMove').map((request) => request.expected_ply), [0, 1]);
});

test('a stale ply is looked at again', async () => {
  const { referee, requests } = fake({
    WatchGame: [
      [snapshot(1, { side_to_move: RED, ...RUNNING }), event(2, { ply: 3, outcome: DEN })],
    ],
    LegalMoves: [legal(0, RED, move('a3a4')), legal(2, RED, move('a4a5'))],
    SubmitMove: [failure(grpc.status.ABORTED, 'STALE_PLY'), ACCEPTED],
  });
  await new Bot(referee, 'g', { side: RED }).run();
  assert.deepEqual(requests('SubmitMove').map((request) => request.expected_ply), [0, 2]);
});

test('old events told again after a cut cause no second move', async () => {
  const { referee, requests } = fake({
    WatchGame: [
      [snapshot(1, { side_to_move: RED, ...RUNNING }), failure(grpc.status.UNAVAILABLE)],
      [
        event(2, { ply: 1, side_to_move: BLUE, ...RUNNING }),
        event(3, { ply: 1, side_to_move: BLUE, ...RUNNING }),
        event(4, { ply: 2, side_to_move: RED, ...RUNNING }),
        event(5, { ply: 3, outcome: DEN }),
      ],
    ],
    LegalMoves: [legal(0, RED, move('a3a4')), legal(2, RED, move('a4a5'))],
    SubmitMove: [ACCEPTED, ACCEPTED],
  });
  await new Bot(referee, 'g', { side: RED }).run();
  assert.deepEqual(requests('SubmitMove').map((request) => request.expected_ply), [0, 2]);
});

test('an offer is answered once', async () => {
  const open_offer = { side: BLUE, ply: 3 };
  for (const acceptDraws of [false, true]) {
    const { referee, requests } = fake({
      WatchGame: [
        [
          snapshot(1, { side_to_move: BLUE, open_offer, ...RUNNING }),
          event(2, { side_to_move: BLUE, open_offer, ...RUNNING }),
          event(3, { outcome: DEN }),
        ],
      ],
      GetGame: [{ game: { open_offer } }],
      AnswerDraw: [{}],
    });
    await new Bot(referee, 'g', { side: RED, acceptDraws }).run();
    const answer = acceptDraws ? 'DRAW_ANSWER_ACCEPT' : 'DRAW_ANSWER_DECLINE';
    assert.deepEqual(requests('AnswerDraw').map((request) => request.answer), [answer]);
  }
});

test('an old offer told again does not answer a newer one', async () => {
  const open_offer = { side: BLUE, ply: 3 };
  const { referee, requests } = fake({
    WatchGame: [
      [snapshot(1, { side_to_move: BLUE, open_offer, ...RUNNING }), event(2, { outcome: DEN })],
    ],
    GetGame: [{ game: { open_offer: { side: BLUE, ply: 5 } } }],
    AnswerDraw: [],
  });
  await new Bot(referee, 'g', { side: RED, acceptDraws: true }).run();
  assert.deepEqual(requests('AnswerDraw'), []);
});
