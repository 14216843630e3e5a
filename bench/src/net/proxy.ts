import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { DelayLine } from './delay-line.js';

export interface Proxy {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Forwards what clients and a server send, each chunk delayed by a fixed time and in order, like a network. The
 * bandwidth is unlimited.
 */
export async function startProxy(target: { host: string; port: number }, delayMs: number): Promise<Proxy> {
  const line = new DelayLine(delayMs);
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
    const upstream = connect({ ...target, noDelay: true, allowHalfOpen: true });
    pipeLater(client, upstream, line);
    pipeLater(upstream, client, line);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await line.close();
    },
  };
}

function pipeLater(from: Socket, to: Socket, line: DelayLine): void {
  from.on('data', (chunk) => line.push(() => to.write(chunk)));
  from.on('end', () => line.push(() => to.end()));
  // If one side disappears without closing, end the other side too.
  from.on('error', () => {});
  from.on('close', () => line.push(() => to.destroy()));
}
