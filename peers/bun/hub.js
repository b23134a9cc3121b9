// A WebSocket hub with Bun's own server, which is uWebSockets underneath, in one process.
//
// publish frames a text once, and collects what one turn of the loop sends to a member into one write.
// Bun turns Nagle's algorithm off, leaves permessage-deflate off, and closes by itself what breaks the
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
    // A member with more unsent bytes than this is cut off. Neither send nor publish waits.
    backpressureLimit: 1 << 20,
    closeOnBackpressureLimit: true,
    open: member => member.subscribe(EVERYBODY),
    message: answer,
  },
});

// JSON.stringify writes a string of plain ASCII as JSON.parse read it. Other payloads come out equal, but
// not byte for byte: 2.50 as 2.5, say.
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
    // uWebSockets sends a member what was published for it before what is sent to it.
    member.send(JSON.stringify({ type: 'broadcastResult', payload, listenerCount }));
  } else {
    fail(member, 'unknown type');
  }
}

function fail(member, error) {
  member.send(JSON.stringify({ type: 'error', error }));
}
