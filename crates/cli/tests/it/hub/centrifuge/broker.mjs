// Two users of two hubs with one broker, with centrifuge-js. The hubs have histories and presence.
//
//     node broker.mjs URL URL
//
// Prints `restart` when the broker should be restarted, and lack everything. The libraries are found below the folder in
// which it is started.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
const { Centrifuge } = require('centrifuge');
const WebSocket = require('ws');
const WITHIN = 60_000;
setTimeout(() => { console.error('too late'); process.exit(1); }, 5 * WITHIN).unref();

/** The events of a subscription, in order. */
class Heard {
  #events = [];
  #wake = () => {};

  constructor(subscription) {
    const add = (...event) => { this.#events.push(event); this.#wake(); };
    subscription.on('subscribed', (ctx) => add('subscribed', ctx.wasRecovering, ctx.recovered));
    subscription.on('publication', (ctx) => add('publication', ctx.data, ctx.offset));
  }

  async next() {
    const late = setTimeout(() => { throw new Error('nothing came'); }, WITHIN);
    while (this.#events.length === 0) {
      await new Promise((resolve) => { this.#wake = resolve; });
    }
    clearTimeout(late);
    return this.#events.shift();
  }

  async expect(...event) {
    assert.deepEqual(await this.next(), event);
  }
}

let last;
class Tracked extends WebSocket {
  constructor(...args) { super(...args); last = this; }
}

const cuts = [];
const users = [];
for (const url of process.argv.slice(2)) {
  const client = new Centrifuge(url, { websocket: Tracked });
  client.connect();
  await client.ready(WITHIN);
  cuts.push(last);
  const sub = client.newSubscription('red', { recoverable: true });
  const heard = new Heard(sub);
  sub.subscribe();
  await heard.expect('subscribed', false, false);
  users.push({ client, sub, heard });
}
const [ann, bob] = users;
await ann.sub.publish({ n: 1 });
for (const { heard } of users) { await heard.expect('publication', { n: 1 }, 1); }
// A hub learns of the members of another one after a moment.
while (Object.keys((await ann.sub.presence()).clients).length < 2
    || (await bob.sub.presenceStats()).numClients < 2) {
  await new Promise((resolve) => { setTimeout(resolve, 50); });
}
const kept = await bob.sub.history({ limit: 10 });
assert.deepEqual(kept.publications.map((one) => [one.offset, one.data]), [[1, { n: 1 }]]);

// The connection is cut, and something is sent meanwhile.
cuts[0].terminate();
for (let n = 2; n < 5; n += 1) {
  await bob.sub.publish({ n });
  await bob.heard.expect('publication', { n }, n);
}
const got = [];
while (got.filter(([kind]) => kind === 'publication').length < 3) { got.push(await ann.heard.next()); }
assert.deepEqual(got.filter(([kind]) => kind === 'publication').map((event) => event[2]), [2, 3, 4]);
assert.deepEqual(got.find(([kind]) => kind === 'subscribed'), ['subscribed', true, true]);

// The broker has lost everything, which both learn.
console.log('restart');
for (const { heard } of users) { await heard.expect('subscribed', true, false); }
await ann.sub.publish('again');
for (const { heard } of users) { await heard.expect('publication', 'again', 1); }
users.forEach(({ client }) => client.disconnect());
