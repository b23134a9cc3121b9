// Two users of two hubs with one broker, with centrifuge-js. The hubs have histories and presence.
//
//     node broker.mjs URL URL
//
// Prints `restart` when the broker should be restarted, and lack everything.

import assert from 'node:assert/strict';
import { Centrifuge, Heard, Tracked, WITHIN } from './library.mjs';

const cuts = [];
const users = [];
for (const url of process.argv.slice(2)) {
  const client = new Centrifuge(url, { websocket: Tracked });
  client.connect();
  await client.ready(WITHIN);
  cuts.push(Tracked.last);
  const sub = client.newSubscription('red', { recoverable: true, joinLeave: true });
  const heard = new Heard(sub, ['subscribed', 'publication']);
  const members = new Heard(sub, ['join', 'leave']);
  sub.subscribe();
  await heard.expect('subscribed', false, false);
  // Its own join, and then what changes at all hubs.
  const [kind, own] = await members.next();
  assert.equal(kind, 'join');
  users.push({ client, sub, heard, members, own });
}
const [ann, bob] = users;
await ann.members.expect('join', bob.own);
assert.notEqual(ann.own, bob.own);
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
const [kind, again] = await ann.members.next();
assert.equal(kind, 'join');
await bob.members.expect('leave', ann.own);
await bob.members.expect('join', again);

// The broker has lost everything, which both learn.
console.log('restart');
for (const { heard } of users) { await heard.expect('subscribed', true, false); }
await ann.sub.publish('again');
for (const { heard } of users) { await heard.expect('publication', 'again', 1); }
users.forEach(({ client }) => client.disconnect());
