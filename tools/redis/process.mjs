import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const GUARD = fileURLToPath(new URL('guard.sh', import.meta.url));
const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 15_000;

/** A port that was free a moment ago may already be taken. */
const PORT_TRIES = 5;

/** The port was taken between choosing it and listening on it. */
export class PortTakenError extends Error {
  name = 'PortTakenError';
}

/** Starts again with new ports if one of them was taken. */
export async function onFreePorts(start) {
  for (let tries = 1; ; tries++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof PortTakenError) || tries === PORT_TRIES) throw error;
    }
  }
}

/**
 * Starts a server as a child of a guard process, in `dir`, and waits until the server answers. The guard has
 * a separate session, so Ctrl-C in the terminal reaches the program that uses the server, but not the server.
 * `orphanDir` is removed if this program dies without stopping the server.
 */
export async function launch({ binary, args, env, port, dir, orphanDir, log: path }) {
  const log = newTextOf(path);
  const guard = spawn('/bin/sh', [GUARD, orphanDir ?? '', path, binary, ...args], {
    cwd: dir,
    env: { ...process.env, ...env },
    detached: true,
    // The shell's own "Killed" is hidden too. The output of the server goes to its log.
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  guard.stdin.on('error', () => {});
  const { pid, exited } = await report(guard);
  if (!pid) throw new Error(`${binary} could not be started:\n${log()}`);
  await answering({ binary, port, pid, exited, log });
  setRef(guard, 'unref');
  return new ServerProcess(guard, pid, exited);
}

/**
 * Resolves when the guard has reported the process number of the server, or undefined if it could not start
 * one.
 */
function report(guard) {
  return new Promise((resolve) => {
    const exited = new Promise((ended) => {
      createInterface({ input: guard.stdout }).on('line', (line) => {
        const [word, number] = line.split(' ');
        if (word === 'pid') resolve({ pid: Number(number), exited });
        if (word !== 'exit') return;
        guard.stdin.end('done\n');
        ended(Number(number));
      });
      guard.once('close', ended);
      guard.once('error', ended);
    });
    void exited.then(() => resolve({ pid: undefined, exited }));
  });
}

class ServerProcess {
  #guard;
  #exited;
  #running = true;

  constructor(guard, pid, exited) {
    this.#guard = guard;
    this.pid = pid;
    this.#exited = exited.then(() => (this.#running = false));
  }

  /** Ends the server and waits until it is gone. SIGTERM lets it finish its writes to disk. May be called twice. */
  async end(signal) {
    setRef(this.#guard, 'ref');
    this.#kill(signal);
    // A stopped process (SIGSTOP) gets SIGTERM only when it continues.
    this.#kill('SIGCONT');
    const late = setTimeout(() => this.#kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(late);
    if (this.#guard.exitCode === null && this.#guard.signalCode === null) await once(this.#guard, 'exit');
  }

  #kill(signal) {
    try {
      if (this.#running) process.kill(this.pid, signal);
    } catch (error) {
      if (error.code !== 'ESRCH') throw error;
    }
  }
}

/** Unreferenced, so a server that nobody stopped does not keep the program alive. The guard then ends it. */
function setRef(guard, verb) {
  for (const handle of [guard, guard.stdin, guard.stdout]) handle[verb]();
}

async function answering({ binary, port, pid, exited, log }) {
  let ended = '';
  void exited.then((code) => (ended = `ended with code ${code}`));
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    const reply = await ask(port);
    if (ended) break;
    if (reply.startsWith('-NOAUTH')) return;
    // Another server may have taken this port first. Only the process id proves that the new server answers.
    // A sentinel loads no data, and does not report `loading`.
    const isReady = reply.includes('loading:0\r\n') || /\b(redis|server)_mode:sentinel\r\n/.test(reply);
    if (reply.includes(`process_id:${pid}\r\n`) && isReady) return;
    await pause(10);
  }
  if (!ended) process.kill(pid, 'SIGKILL');
  const text = log();
  const isTaken = /address already in use|failed listening on port/i.test(text);
  if (isTaken) throw new PortTakenError(`port ${port} is taken`);
  throw new Error(
    `${binary} on port ${port} ${ended || `did not answer within ${START_TIMEOUT_MS} ms`}:\n${text}`,
  );
}

/** The INFO of the server at this port, or '' if nobody answers in time. */
function ask(port) {
  return new Promise((resolve) => {
    let reply = '';
    const socket = createConnection({ host: '127.0.0.1', port, timeout: 1_000 });
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write('INFO server persistence\r\nQUIT\r\n'));
    socket.on('data', (text) => (reply += text));
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve(reply));
  });
}

/** Returns a function that reads the last lines written to this file from now on. */
function newTextOf(path) {
  closeSync(openSync(path, 'a'));
  const from = statSync(path).size;
  return () => readFileSync(path).subarray(from).toString().split('\n').slice(-15).join('\n').trim();
}
