// A server of ../node in a process per core. The processes share a listening socket
// (NODE_CLUSTER_SCHED_POLICY=none), or the primary distributes the connections (rr, the default).
'use strict';
const cluster = require('node:cluster');
const { parseArgs } = require('node:util');

const options = { port: { type: 'string' }, cores: { type: 'string' } };
const { values, positionals: [workload] } = parseArgs({ options, allowPositionals: true });
if (cluster.isPrimary) {
  for (let i = 0; i < +values.cores; i++) cluster.fork();
  // The primary exits after its last worker.
  process.on('SIGTERM', () => Object.values(cluster.workers).forEach(worker => worker.kill('SIGTERM')));
} else {
  require(`../node/${workload}.js`);
}
