import { createServer, type AddressInfo, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { ClusterLink } from '#lib/engine/cluster/cluster-link.js';
import { Clients } from '#lib/engine/wire/clients.js';
import { atEnd } from '../support/cleanup.js';
import { matches, RequestSplitter } from '../support/cut/requests.js';
import { latch } from '../support/wait.js';

/** A node of a cluster: `answer` gives the reply to a command; undefined: an ordinary one. */
async function startNode(
  answer: (words: readonly string[]) => string | Promise<string> | undefined,
): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const splitter = new RequestSplitter();
    let last = Promise.resolve();
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const request of splitter.push(chunk)) {
        matches(request, (words) => {
          last = last.then(async () => void socket.write((await answer(words)) ?? ordinary(words[0]!)));
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
  return (server.address() as AddressInfo).port;
}

function ordinary(command: string): string {
  return command.toLowerCase() === 'info' ? '$19\r\nredis_version:7.0.0\r\n' : '+OK\r\n';
}

/** A master with all slots, from which the slot of `key` moves to a node that has no slot yet. */
async function startMove(next: (words: readonly string[]) => string | Promise<string> | undefined) {
  const to = await startNode(next);
  let looks = 0;
  const looked = latch('the slots were read again');
  const from: number = await startNode(([command]) => {
    if (command!.toLowerCase() === 'get') return `-ASK 12539 127.0.0.1:${to}\r\n`;
    if (command!.toLowerCase() !== 'cluster') return undefined;
    if (++looks > 1) looked.open();
    return `*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:${from}\r\n$1\r\na\r\n`;
  });
  const plan = new Clients({ cluster: [`redis://127.0.0.1:${from}`] }, 'test').cluster!;
  const link = new ClusterLink('command', plan, () => {});
  atEnd(() => link.close());
  return { link, looked };
}

it('waits for the node that gets the slot, also if the slots are read again meanwhile', async () => {
  const asked = latch('the next node was asked');
  const connected = latch('the next node lets clients in');
  const { link, looked } = await startMove(async ([command]) => {
    if (command!.toLowerCase() === 'get') return '+there\r\n';
    if (command!.toLowerCase() !== 'info') return '+OK\r\n';
    asked.open();
    await connected.promise;
    return ordinary('info');
  });
  const got = link.send('get', 'get', ['key'], 10_000);
  await asked.promise;
  // The node has no slot, so it is not among the masters that are read.
  link.lookSoon();
  await looked.promise;
  connected.open();
  expect(await got).toBe('there');
});

it('sends a call again that the node that gets the slot cannot serve yet', async () => {
  let tries = 0;
  const { link } = await startMove(([command]) => {
    if (command!.toLowerCase() !== 'get') return undefined;
    return ++tries < 3 ? '-TRYAGAIN Multiple keys request during rehashing of slot\r\n' : '+there\r\n';
  });
  expect(await link.send('get', 'get', ['key'], 10_000)).toBe('there');
});
