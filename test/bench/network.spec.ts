import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startProxy } from '../../bench/src/beside/start.js';
import { now } from '../../bench/src/measure/clock.js';
import { atEnd } from '../support/cleanup.js';
import { useCompanions } from './companions.js';

const DELAY_MS = 5;
useCompanions();

/** A server that says back what it is told, and what it was told in all. */
async function echo(): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.pipe(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

async function through(port: number): Promise<Socket> {
  const proxy = await startProxy();
  atEnd(() => proxy.end());
  const open = await proxy.ask('open', { host: '127.0.0.1', port, delayMs: DELAY_MS });
  const socket = connect(open, '127.0.0.1');
  socket.setEncoding('utf8').setNoDelay(true);
  atEnd(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

describe('the network of the suite', () => {
  it('delivers each chunk after the delay, in order, and passes on the end', async () => {
    const { server, port } = await echo();
    atEnd(() => void server.close());
    const socket = await through(port);
    let heard = '';
    socket.on('data', (text: string) => (heard += text));

    let said = '';
    const took: number[] = [];
    for (let i = 0; i < 50; i += 2) {
      // Two at once, of different lengths.
      const chunks = [i, i + 1].map((n) => `${n}${'.'.repeat(n % 7)}\n`);
      const before = now();
      for (const chunk of chunks) socket.write(chunk);
      said += chunks.join('');
      await once(socket, 'data');
      took.push(now() - before);
      while (heard.length < said.length) await once(socket, 'data');
    }
    expect(heard).toBe(said);
    expect(Math.min(...took)).toBeGreaterThanOrEqual(2 * DELAY_MS);

    socket.end();
    await once(socket, 'close');
  });

  it('closes the connection if nothing listens at the target', async () => {
    const { server, port } = await echo();
    server.close();
    await once(server, 'close');
    const socket = await through(port);
    socket.resume();
    await once(socket, 'close');
    expect(socket.bytesRead).toBe(0);
  });
});
