'use strict';
// What to play, and how long to think about it. This is the module to put an engine into.

const { milliseconds, word } = require('./referee');

// The square that wins the game for a side.
const ENEMY_DEN = { SIDE_RED: 'd9', SIDE_BLUE: 'd1' };

// One of the legal moves. Greedy: into the den, else take something, else any; random: any.
function choose(moves, side, rng, style = 'greedy') {
  let from = moves;
  if (style === 'greedy') {
    const intoDen = moves.filter((move) => move.to_square === ENEMY_DEN[side]);
    const taking = moves.filter((move) => move.captures !== 'ANIMAL_UNSPECIFIED');
    from = intoDen.length ? intoDen : taking.length ? taking : moves;
  }
  return from[Math.floor(rng() * from.length)];
}

// Random numbers in [0, 1) that a seed repeats (mulberry32); without a seed, others each time.
function randomNumbers(seed = Math.floor(Math.random() * 2 ** 32)) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Estimates the server's time from the stamps in its messages. A stamp is always a little old when
// it arrives, so the estimate that puts the server furthest ahead is the best one.
class ServerClock {
  constructor(monotonic = () => performance.now()) {
    this.monotonic = monotonic;
    this.ahead = undefined;
  }

  learn(timestamp) {
    const ahead = milliseconds(timestamp) - this.monotonic();
    this.ahead = Math.max(ahead, this.ahead ?? ahead);
  }

  // Milliseconds until a moment of the server's time; never negative; undefined if nothing is known.
  leftUntil(timestamp) {
    if (this.ahead === undefined) return undefined;
    return Math.max(0, milliseconds(timestamp) - (this.monotonic() + this.ahead));
  }
}

// How many ms to think: what is wanted, but at most half of what is left after a margin.
function timeToThink(wanted, left, margin = 250) {
  if (left === undefined) return wanted;
  return Math.max(0, Math.min(wanted, (left - margin) / 2));
}

// A side's opposite, both as the contract writes them.
function opposite(side) {
  return word(side, 'SIDE_') === 'RED' ? 'SIDE_BLUE' : 'SIDE_RED';
}

module.exports = { choose, randomNumbers, ServerClock, timeToThink, opposite };
