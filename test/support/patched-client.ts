import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';

/**
 * A client that sends other scripts than it is asked to, by their texts: so a test can have an engine that is worse than
 * the true one, and show that it is found out.
 */
export function patchedClient(url: string, patches: ReadonlyMap<string, string>): Redis {
  const shas = new Map([...patches].map(([good, bad]) => [sha(good), sha(bad)]));
  const client = new Redis(url, { lazyConnect: true });
  const send = client.sendCommand.bind(client);
  client.sendCommand = (command, ...rest) => {
    const [script] = command.args as string[];
    const other =
      command.name === 'evalsha' ? shas.get(script!) : command.name === 'eval' && patches.get(script!);
    if (other) command.args[0] = other;
    return send(command, ...rest);
  };
  return client;
}

function sha(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}
