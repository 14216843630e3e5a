import { createServer } from 'node:net';

/**
 * Returns a free port of 127.0.0.1, below the range of outgoing connections. If an outgoing connection got
 * the port of a server that is down for a moment, the client could connect to itself.
 */
export async function freePort() {
  for (let tries = 0; tries < 100; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (await isFree(port)) return port;
  }
  throw new Error('no free port between 20000 and 31999 on 127.0.0.1');
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
