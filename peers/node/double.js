// Answers each line, an integer, with its double; `end` ends the conversation.
'use strict';
const net = require('node:net');
const { parseArgs } = require('node:util');

const MAX_LINE = 1024;
const TOO_LONG = `error: line longer than ${MAX_LINE} bytes\n`;
const INTEGER = /^[+-]?\d+$/;
const SMALL_DIGITS = 15; // the double of a number with so few digits is exact in a Number
const MIN = -(2n ** 63n);
const MAX = 2n ** 64n - 1n;
// Limits on reading after the conversation, so that closing does not reset the connection.
const DRAIN_BYTES = 1 << 20;
const DRAIN_MS = 1000;
const BACKLOG = 4096; // like Go and Haskell; the default is 511

function serve(socket) {
  let rest = '';
  socket.setEncoding('latin1'); // one character per byte
  socket.on('error', () => {}); // a client may reset; the socket closes by itself
  socket.on('data', chunk => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    let answers = '';
    for (const raw of lines) {
      const line = chomp(raw);
      if (line === 'end') return hangUp(socket, answers);
      if (line.length > MAX_LINE) return hangUp(socket, answers + TOO_LONG);
      answers += double(line);
    }
    if (chomp(rest).length > MAX_LINE) return hangUp(socket, answers + TOO_LONG);
    if (answers && !socket.write(answers, 'latin1')) {
      socket.pause();
      socket.once('drain', () => socket.resume());
    }
  });
}

function chomp(line) {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

function double(line) {
  if (INTEGER.test(line)) {
    if (line.length <= SMALL_DIGITS) return `${2 * Number(line)}\n`;
    const n = BigInt(line);
    if (n >= MIN && n <= MAX) return `${2n * n}\n`;
  }
  return `error: not an integer: ${escape(line.slice(0, 32))}\n`;
}

function escape(text) {
  return text.replace(/\\|[^ -~]/g, c =>
    c === '\\' ? '\\\\' : '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'));
}

function hangUp(socket, answers) {
  let left = DRAIN_BYTES;
  socket.removeAllListeners('data');
  socket.on('data', chunk => {
    if ((left -= chunk.length) < 0) socket.pause();
  });
  socket.end(answers, 'latin1', () => socket.setTimeout(DRAIN_MS, () => socket.destroy()));
}

const { values } = parseArgs({ strict: false, options: { port: { type: 'string' } } });
net.createServer({ noDelay: true }, serve).listen({
  host: '127.0.0.1', port: +values.port, backlog: BACKLOG,
});
