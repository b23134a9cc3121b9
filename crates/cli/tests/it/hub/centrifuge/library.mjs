// The client library of the tests, and what a subscription hears. The libraries are found below the folder in which a script is
// started.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/');
export const { Centrifuge } = require('centrifuge');
export const WebSocket = require('ws');
export const WITHIN = 60_000;
setTimeout(() => { console.error('too late'); process.exit(1); }, 5 * WITHIN).unref();

/** Remembers the last one that was opened. */
export class Tracked extends WebSocket {
  static last;
  constructor(...args) { super(...args); Tracked.last = this; }
}

const VALUES = {
  subscribed: (ctx) => [ctx.wasRecovering, ctx.recovered],
  unsubscribed: (ctx) => [ctx.code],
  publication: (ctx) => [ctx.data, ctx.offset],
  join: (ctx) => [ctx.info.user || ctx.info.client],
  leave: (ctx) => [ctx.info.user || ctx.info.client],
  error: (ctx) => [ctx.error.code],
};

/** The events of a subscription, in order: all, or those of these kinds. */
export class Heard {
  #events = [];
  #wake = () => {};

  constructor(subscription, kinds = Object.keys(VALUES)) {
    for (const kind of kinds) {
      subscription.on(kind, (ctx) => { this.#events.push([kind, ...VALUES[kind](ctx)]); this.#wake(); });
    }
  }

  async next() {
    const late = setTimeout(() => { throw new Error('nothing came'); }, WITHIN);
    while (this.#events.length === 0) {
      await new Promise((resolve) => { this.#wake = resolve; });
    }
    clearTimeout(late);
    return this.#events.shift();
  }

  async expect(...event) {
    assert.deepEqual(await this.next(), event);
  }
}
