// A WebSocket hub with Bun's own server, which is based on uWebSockets, in one process.
//
// publish frames a text once, and combines all texts for a member in one turn of the loop into one write.
// Bun disables Nagle's algorithm, leaves permessage-deflate off, and closes connections that violate the
// protocol. It has no setting for the backlog, which is 512.
const PORT = +process.argv[2];
const EVERYBODY = 'hub';

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: PORT,
  routes: {
    '/ws': (request, server) =>
      server.upgrade(request) ? undefined : new Response('WebSocket only', { status: 426 }),
  },
  fetch: () => new Response('not found', { status: 404 }),
  websocket: {
    maxPayloadLength: 1 << 20,
    // A member with more unsent bytes than this is disconnected. Neither send nor publish waits.
    backpressureLimit: 1 << 20,
    closeOnBackpressureLimit: true,
    open: member => member.subscribe(EVERYBODY),
    message: answer,
  },
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
    member.send(JSON.stringify({ type, payload }));
  } else if (type === 'broadcast') {
    const listenerCount = server.subscriberCount(EVERYBODY);
    server.publish(EVERYBODY, JSON.stringify({ type, payload }));
    // uWebSockets delivers published texts to a member before texts that are sent to it directly.
    member.send(JSON.stringify({ type: 'broadcastResult', payload, listenerCount }));
  } else {
    fail(member, 'unknown type');
  }
}

function fail(member, error) {
  member.send(JSON.stringify({ type: 'error', error }));
}
