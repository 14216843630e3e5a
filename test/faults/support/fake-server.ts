import { createServer, type Socket, type AddressInfo } from 'node:net';
import { atEnd } from '../../support/cleanup.js';
import { RequestSplitter, matches } from '../../support/cut/requests.js';

/** A server that answers only questions about what it is. The end of the test closes it. Returns its URL. */
export async function startFakeServer(info: string): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const splitter = new RequestSplitter();
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const request of splitter.push(chunk)) {
        matches(request, (words) => {
          socket.write(reply(words[0]!.toLowerCase(), info));
          return true;
        });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function reply(command: string, info: string): string {
  switch (command) {
    case 'hello':
      return "-ERR unknown command 'HELLO'\r\n";
    case 'info':
      return `$${Buffer.byteLength(info)}\r\n${info}\r\n`;
    case 'time':
      return '*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n';
    default:
      return '+OK\r\n';
  }
}
