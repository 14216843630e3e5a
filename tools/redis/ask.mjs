import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Sends one command and returns its reply as text. An error reply rejects. It uses no client, because tests count the
 * connections of clients.
 */
export function ask(port, command) {
  return new Promise((resolve, reject) => {
    let reply = '';
    const socket = createConnection({ host: '127.0.0.1', port, timeout: 2_000 });
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.end(`${command}\r\n`));
    socket.on('data', (text) => (reply += text));
    socket.on('timeout', () => socket.destroy(new Error(`${command}: no answer from port ${port}`)));
    socket.on('error', reject);
    socket.on('close', () => {
      if (reply.startsWith('-') || reply === '') reject(new Error(`${command}: ${reply || 'no answer'}`));
      else
        resolve(
          reply
            .replace(/^\$\d+\r\n/, '')
            .replace(/^\+/, '')
            .replace(/\r\n$/, ''),
        );
    });
  });
}

/**
 * Asks repeatedly until the answer is truthy, and returns that answer. The last error is the cause of the
 * failure.
 */
export async function until(predicate, what, timeoutMs = 30_000) {
  const deadline = Date.now() + timeoutMs;
  let cause;
  while (Date.now() < deadline) {
    try {
      const answer = await predicate();
      if (answer) return answer;
    } catch (error) {
      cause = error;
    }
    await pause(20);
  }
  throw new Error(`waited ${timeoutMs} ms in vain: ${what}`, { cause });
}
