'use strict';
// Talking to the referee: the contract, the channel, errors, and calls that are safe to repeat.
//
// `Referee.call` is the part to copy first. A call whose answer did not come may have been carried
// out all the same, so it is repeated with the same body, and so with the same request_id, until
// the answer is known. The referee answers such a repeat with the first answer again.

const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

// The contract is read from the .proto files as they stand: no generated code to keep up to date.
const PROTO_FOLDER = process.env.JUNGLE_PROTO || path.resolve(__dirname, '../../../proto');
const LOADING = {
  keepCase: true, // field names as in the .proto files: game_id, not gameId
  longs: Number, // sequences are far below 2^53
  enums: String, // a number that this contract does not know stays a number
  defaults: true, // absent messages are null, absent lists []
  oneofs: true, // response.verdict names the field that is set
};
const contract = protoLoader.loadSync('jungle/v1/referee.proto', {
  ...LOADING,
  includeDirs: [PROTO_FOLDER],
});
const details = protoLoader.loadSync(path.resolve(__dirname, '../error_details.proto'), LOADING);
const { RefereeService } = grpc.loadPackageDefinition(contract).jungle.v1;

const DOMAIN = 'jungle.v1';

const CHANNEL_OPTIONS = {
  // Pings find a dead connection under an open stream. Servers punish clients that ping too often.
  'grpc.keepalive_time_ms': 30_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.keepalive_permit_without_calls': 0,
  // After a cut, come back within seconds, not minutes.
  'grpc.initial_reconnect_backoff_ms': 200,
  'grpc.min_reconnect_backoff_ms': 2_000,
  'grpc.max_reconnect_backoff_ms': 5_000,
  // Two bots in one process must not share a connection by accident.
  'grpc.use_local_subchannel_pool': 1,
};

// The call may have been carried out or not: repeat it unchanged.
const FATE_UNKNOWN = new Set([
  grpc.status.DEADLINE_EXCEEDED,
  grpc.status.CANCELLED,
  grpc.status.UNAVAILABLE,
]);
// What a library reports when a connection breaks in the middle of an answer. Only without an
// ErrorInfo: with one it is the referee who speaks.
const BROKEN_TRANSPORT = new Set([grpc.status.INTERNAL, grpc.status.UNKNOWN]);

// An error status, with what its details say. `reason` is empty if the transport made it.
class RefereeError extends Error {
  constructor(code, message, { reason = '', metadata = {}, retryAfter, fields = [] } = {}) {
    super(`${grpc.status[code]} ${reason || '(no reason)'}: ${message}`);
    this.name = 'RefereeError';
    this.code = code;
    this.reason = reason;
    this.metadata = metadata;
    this.retryAfter = retryAfter; // milliseconds, or undefined
    this.fields = fields; // { field, description }
  }

  get fateUnknown() {
    return FATE_UNKNOWN.has(this.code) || (!this.reason && BROKEN_TRANSPORT.has(this.code));
  }

  // A limit that is likely to pass. A limit of the transport's own has no reason, and stays.
  get tryLater() {
    return this.code === grpc.status.RESOURCE_EXHAUSTED && this.reason !== '';
  }
}

// Reads the details (google.rpc.ErrorInfo, RetryInfo, BadRequest) of an error of a call.
function explain(error) {
  const found = {};
  const [packed] = error.metadata?.get('grpc-status-details-bin') ?? [];
  const status = packed ? details['google.rpc.Status'].deserialize(packed) : { details: [] };
  for (const { type_url: url, value } of status.details) {
    const type = url.slice(url.lastIndexOf('/') + 1);
    const detail = details[type]?.deserialize(value);
    if (type === 'google.rpc.ErrorInfo' && detail.domain === DOMAIN) {
      found.reason = detail.reason;
      found.metadata = detail.metadata;
    } else if (type === 'google.rpc.RetryInfo') {
      found.retryAfter = milliseconds(detail.retry_delay);
    } else if (type === 'google.rpc.BadRequest') {
      found.fields = detail.field_violations;
    }
  }
  return new RefereeError(error.code, error.details ?? error.message, found);
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Waits that double, with jitter so that a hundred bots do not come back at once.
class Backoff {
  constructor(wait = sleep, first = 100, most = 3000) {
    Object.assign(this, { sleep: wait, first, most, next: first });
  }

  reset() {
    this.next = this.first;
  }

  // Waits for the next span, or for the one that the server named, and a little more.
  async wait(atLeast = 0) {
    const span = this.next * (0.5 + Math.random() / 2);
    this.next = Math.min(this.next * 2, this.most);
    await this.sleep(atLeast ? atLeast + span : span);
  }
}

// A channel to the referee in the name of one caller: a seat, a creator, or nobody.
class Referee {
  constructor(server, token, options = {}) {
    this.server = server;
    this.callTimeout = options.callTimeout ?? 5000;
    this.patience = options.patience ?? 120_000; // how long calls are repeated before giving up
    this.log = options.log ?? console.error;
    this.sleep = options.sleep ?? sleep;
    this.retries = 0;
    this.metadata = new grpc.Metadata();
    if (token) this.metadata.set('authorization', `Bearer ${token}`);
    this.client = options.client;
    if (!this.client) this.connect();
  }

  // Opens a new connection and gives the old one up, with whatever is still open on it.
  //
  // A connection can be dead without either end having been told. Then every call on it meets the
  // same silence, until the keepalive finds out; a new connection is quicker.
  connect() {
    if (this.client && !(this.client instanceof RefereeService)) return; // one that was handed in
    this.stream?.cancel();
    this.client?.close();
    const credentials = grpc.credentials.createInsecure();
    this.client = new RefereeService(this.server, credentials, CHANNEL_OPTIONS);
  }

  // Makes a call, and repeats it unchanged until its fate is known. Throws RefereeError.
  async call(method, request, timeout = this.callTimeout) {
    const backoff = new Backoff(this.sleep);
    const giveUp = Date.now() + this.patience;
    for (;;) {
      const { error, reply } = await this.tryOnce(method, request, timeout);
      if (!error) return reply;
      if (!(error.fateUnknown || error.tryLater) || Date.now() >= giveUp) throw error;
      this.retries += 1;
      this.log(`${method}: ${error.message}; repeating it`);
      if (error.code === grpc.status.DEADLINE_EXCEEDED) this.connect();
      await backoff.wait(error.retryAfter);
    }
  }

  tryOnce(method, request, timeout) {
    return new Promise((done) => {
      const deadline = Date.now() + timeout;
      this.client[method](request, this.metadata, { deadline }, (error, reply) =>
        done(error ? { error: explain(error) } : { reply }),
      );
    });
  }

  // Opens a WatchGame stream. Iterating over it throws when it breaks.
  watch(request) {
    this.stream = this.client.WatchGame(request, this.metadata);
    return this.stream;
  }

  close() {
    this.client.close();
  }
}

// A google.protobuf.Duration or Timestamp as a number of milliseconds.
function milliseconds(span) {
  return span ? span.seconds * 1000 + span.nanos / 1e6 : 0;
}

// A number of milliseconds as a google.protobuf.Duration.
function duration(ms) {
  return { seconds: Math.floor(ms / 1000), nanos: Math.floor(ms % 1000) * 1_000_000 };
}

// An enum's word without its prefix. Enums may grow: a number that this contract does not know is
// treated as unspecified.
function word(value, prefix) {
  return typeof value === 'string' ? value.replace(prefix, '') : 'UNSPECIFIED';
}

module.exports = {
  Referee,
  RefereeError,
  Backoff,
  contract,
  details,
  duration,
  explain,
  milliseconds,
  status: grpc.status,
  word,
};
