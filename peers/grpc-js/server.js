// The service Greeter of ../helloworld.proto: server.js --port PORT
//
// As the examples of grpc-node start a server: the file is read at run time (@grpc/proto-loader), which is the usual
// way in JavaScript, with the options of the examples. Without `defaults`, an absent name is undefined. All options of
// the server have their defaults.
'use strict';
const path = require('node:path');
const { parseArgs } = require('node:util');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const definition = protoLoader.loadSync(path.join(__dirname, '../helloworld.proto'), {
  keepCase: true, longs: String, enums: String, defaults: true, oneofs: true,
});
const { helloworld } = grpc.loadPackageDefinition(definition);

function sayHello({ request: { name } }, callback) {
  callback(null, { message: `Hello ${name}` });
}

function sayHelloStreamReply(call) {
  const { name, replies } = call.request;
  let n = 0;
  // `write` returns false while the client does not read.
  const send = () => {
    while (n < replies && !call.cancelled) {
      if (!call.write({ message: `Hello ${name} ${++n}` })) return call.once('drain', send);
    }
    call.end();
  };
  send();
}

const { port } = parseArgs({ options: { port: { type: 'string' } } }).values;
const server = new grpc.Server();
server.addService(helloworld.Greeter.service, { sayHello, sayHelloStreamReply });
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), error => {
  if (error) throw error;
});
