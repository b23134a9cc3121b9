// Hashes a file over HTTP, as many times as the request says. The file is read aside; the hashing
// keeps the event loop, and so everybody else, waiting: that is what the article measured.
'use strict';
const { createHash } = require('node:crypto');
const { readFile } = require('node:fs');
const http = require('node:http');
const { parseArgs } = require('node:util');

const MAX_TIMES = 100_000;
const BACKLOG = 4096; // the default, 511, turns away what Go and Java let wait
const IDLE_MS = 3_600_000; // the default, 5 s, cuts off clients that are merely slow

function hash(request, response) {
  const [path, query] = request.url.split('?', 2);
  if (path !== '/hash') return answer(response, 404, `there is no ${path}`);
  const n = new URLSearchParams(query).get('n');
  const times = Number(n);
  if (!/^\d+$/.test(n) || times < 1 || times > MAX_TIMES) {
    return answer(response, 400, `n must be an integer from 1 to ${MAX_TIMES}`);
  }
  readFile(process.env.HASH_FILE, (error, data) => {
    if (error) return answer(response, 500, `the file cannot be read: ${error.message}`);
    let digest;
    for (let i = 0; i < times; i++) digest = createHash('sha256').update(data).digest('hex');
    answer(response, 200, digest);
  });
}

function answer(response, status, text) {
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

const { values } = parseArgs({ strict: false, options: { port: { type: 'string' } } });
http.createServer({ keepAliveTimeout: IDLE_MS }, hash).listen({
  host: '127.0.0.1', port: +values.port, backlog: BACKLOG,
});
