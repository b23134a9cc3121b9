// Hashes a file over HTTP, as many times as requested. libuv's threads read the file, or with --sync the
// event loop does. Hashing blocks the event loop, and with it all other requests, as in the article.
'use strict';
const { createHash } = require('node:crypto');
const { readFile, readFileSync } = require('node:fs');
const http = require('node:http');
const { parseArgs } = require('node:util');

const MAX_TIMES = 100_000;
const BACKLOG = 4096; // like Go and Java; the default is 511
const IDLE_MS = 3_600_000; // the default, 5 s, disconnects clients that are only slow

function hash(request, response) {
  const [path, query] = request.url.split('?', 2);
  if (path !== '/hash') return answer(response, 404, `there is no ${path}`);
  const parameters = new URLSearchParams(query);
  const [n, salt] = [parameters.get('n'), parameters.get('salt')];
  const times = Number(n);
  if (!/^\d+$/.test(n) || times < 1 || times > MAX_TIMES) {
    return answer(response, 400, `n must be an integer from 1 to ${MAX_TIMES}`);
  }
  if (salt !== null && !/^[0-9a-f]{1,32}$/.test(salt)) {
    return answer(response, 400, 'salt must be 1 to 32 lower-case hex digits');
  }
  read(process.env.HASH_FILE, (error, data) => {
    if (error) return answer(response, 500, `the file cannot be read: ${error.message}`);
    answer(response, 200, digest(data, times, salt));
  });
}

// readFile, on this thread.
function readNow(path, done) {
  let data;
  try {
    data = readFileSync(path);
  } catch (error) {
    return done(error);
  }
  done(null, data);
}

// With a salt, each digest covers the previous digest and then the file.
function digest(data, times, salt) {
  let last = salt;
  for (let i = 0; i < times; i++) {
    const sha256 = createHash('sha256');
    if (salt !== null) sha256.update(last);
    last = sha256.update(data).digest();
  }
  return last.toString('hex');
}

function answer(response, status, text) {
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

const options = { port: { type: 'string' }, sync: { type: 'boolean' } };
const { values } = parseArgs({ strict: false, options });
const read = values.sync ? readNow : readFile;
http.createServer({ keepAliveTimeout: IDLE_MS }, hash).listen({
  host: '127.0.0.1', port: +values.port, backlog: BACKLOG,
});
