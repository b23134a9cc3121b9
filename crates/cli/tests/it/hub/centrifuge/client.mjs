// Two users of a hub, with centrifuge-js. The hub has histories, presence and tokens.
//
//     node client.mjs URL SECRET

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { Centrifuge, Heard, Tracked, WITHIN, WebSocket } from './library.mjs';

const [url, secret] = process.argv.slice(2);

function token(claims) {
  const part = (text) => Buffer.from(text).toString('base64url');
  const text = part('{"alg":"HS256"}') + '.' + part(JSON.stringify(claims));
  return text + '.' + crypto.createHmac('sha256', secret).update(text).digest('base64url');
}

const now = () => Math.floor(Date.now() / 1000);

async function fails(promise, code) {
  const error = await promise.then(() => ({ code: 'none' }), (error) => error);
  assert.equal(error.code, code);
}

let tokens = 0;
const getToken = async () => { tokens += 1; return token({ sub: 'ann', exp: now() + 3 }); };
const ann = new Centrifuge(url, { websocket: Tracked, getToken });
const bob = new Centrifuge(url, { websocket: WebSocket, token: token({ sub: 'bob' }) });
ann.connect();
await ann.ready(WITHIN);
const cut = Tracked.last;
bob.connect();
const inRed = ann.newSubscription('red', { recoverable: true, joinLeave: true });
const red = new Heard(inRed);
inRed.subscribe();
await red.expect('subscribed', false, false);
await red.expect('join', 'ann');
const inBobs = bob.newSubscription('red');
const bobs = new Heard(inBobs);
inBobs.subscribe();
await bobs.expect('subscribed', false, false);
await red.expect('join', 'bob');
await inBobs.publish({ n: 1 });
await red.expect('publication', { n: 1 }, 1);
await bobs.expect('publication', { n: 1 }, 1);

const there = Object.values((await inRed.presence()).clients).map((one) => one.user).sort();
assert.deepEqual(there, ['ann', 'bob']);
assert.equal((await inBobs.presenceStats()).numClients, 2);
const kept = await inRed.history({ limit: 10 });
assert.deepEqual(kept.publications.map((one) => [one.offset, one.data]), [[1, { n: 1 }]]);
await fails(bob.rpc('x', {}), 108);
await fails(bob.history('red', { limit: 1, since: { offset: 9, epoch: kept.epoch } }), 112);

// The connection is cut, and something is sent meanwhile.
cut.terminate();
for (let n = 2; n < 5; n += 1) {
  await bob.publish('red', { n });
  await bobs.expect('publication', { n }, n);
}
const got = [];
while (got.filter(([kind]) => kind === 'publication').length < 3) {
  const event = await red.next();
  if (event[0] === 'subscribed') { assert.deepEqual(event, ['subscribed', true, true]); }
  got.push(event);
}
assert.deepEqual(got.filter(([kind]) => kind === 'publication').map((event) => event[2]), [2, 3, 4]);
assert(got.some(([kind]) => kind === 'subscribed'), JSON.stringify(got));

// Several rooms over one connection, one with a token of its own, and tokens are renewed.
let own = 0;
const inOwn = bob.newSubscription('own', {
  getToken: async ({ channel }) => { own += 1; return token({ sub: 'bob', channel, exp: now() + 3 }); },
});
const owns = new Heard(inOwn);
inOwn.subscribe();
await owns.expect('subscribed', false, false);
const before = [tokens, own];
const until = Date.now() + WITHIN;
while (tokens < before[0] + 2 || own < before[1] + 1) {
  assert(Date.now() < until, 'no token was renewed');
  await new Promise((resolve) => { setTimeout(resolve, 50); });
}
await inOwn.publish('still');
await owns.expect('publication', 'still', 1);
assert.equal(ann.state, 'connected');

inBobs.unsubscribe();
await bobs.expect('unsubscribed', 0);
for (let event = []; event[0] !== 'leave' || event[1] !== 'bob';) { event = await red.next(); }
ann.disconnect();
bob.disconnect();
