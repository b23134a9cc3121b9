// Replies with the time over HTTP/1.1, or over HTTP/2 with prior knowledge.
'use strict';
const http = require('node:http');
const http2 = require('node:http2');
const { parseArgs } = require('node:util');

const BACKLOG = 4096; // like Go and Java; the default is 511
const IDLE_MS = 3_600_000; // the default, 5 s, disconnects clients that are only slow

function hello(request, response) {
  const [path] = request.url.split('?', 1);
  if (path !== '/') {
    response.writeHead(404);
    return response.end();
  }
  const body = `Hello. The time is ${Math.floor(Date.now() / 1000)}`;
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
}

const { values } = parseArgs({
  strict: false, options: { port: { type: 'string' }, http2: { type: 'boolean' } },
});
const server = values.http2
  ? http2.createServer(hello)
  : http.createServer({ keepAliveTimeout: IDLE_MS }, hello);
server.listen({ host: '127.0.0.1', port: +values.port, backlog: BACKLOG });
