// A WebSocket hub with ws, in one process: Node.js shares no sockets or objects between threads.
//
// ws writes each frame when it is sent and has no broadcast function. It disables Nagle's algorithm, leaves
// permessage-deflate off, and closes with 1002, 1007 and 1009 by itself.
'use strict';
const { WebSocketServer, WebSocket } = require('ws');
const { parseArgs } = require('node:util');

const BACKLOG = 4096; // the default is 511
const MAX_MESSAGE = 1 << 20;
// Unsent bytes. A member with more reads too slowly and is disconnected, because send never waits.
const MAX_BUFFERED = 1 << 20;

const { values } = parseArgs({ strict: false, options: { port: { type: 'string' } } });
const hub = new WebSocketServer({
  host: '127.0.0.1', port: +values.port, path: '/ws', backlog: BACKLOG, maxPayload: MAX_MESSAGE,
});

hub.on('connection', member => {
  member.on('error', () => {}); // ws closes the connection
  member.on('message', data => answer(member, data));
});

// JSON.stringify reproduces a string of plain ASCII exactly. Other payloads stay equal, but their bytes may
// change: 2.50 becomes 2.5.
function answer(member, data) {
  let type, payload;
  try {
    ({ type, payload } = JSON.parse(data) ?? {});
  } catch (error) {
    return fail(member, error.message);
  }
  if (payload === undefined) return fail(member, 'no payload');
  if (type === 'echo') {
    send(member, JSON.stringify({ type, payload }));
  } else if (type === 'broadcast') {
    const listenerCount = broadcast(JSON.stringify({ type, payload }));
    send(member, JSON.stringify({ type: 'broadcastResult', payload, listenerCount }));
  } else {
    fail(member, 'unknown type');
  }
}

function broadcast(text) {
  const bytes = Buffer.from(text); // encoded once; ws adds a header for each member
  let count = 0;
  for (const member of hub.clients) if (send(member, bytes)) count++;
  return count;
}

function send(member, text) {
  if (member.readyState !== WebSocket.OPEN) return false;
  if (member.bufferedAmount > MAX_BUFFERED) {
    member.terminate(); // it would not read a close frame
    return false;
  }
  member.send(text, { binary: false });
  return true;
}

function fail(member, error) {
  send(member, JSON.stringify({ type: 'error', error }));
}
