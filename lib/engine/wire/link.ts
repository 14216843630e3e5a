import type { Redis } from 'ioredis';
import {
  RedisRefusedError,
  RedisUnavailableError,
  NotRunningError,
  UnsupportedRedisError,
  QueueFormatError,
  GodwitError,
} from '../../errors.js';
import { FlatCommand, type Sender } from './command.js';
import type { LinkEvent } from '../../contract/engine.js';
import type { Internal } from './clients.js';
import type { Arg } from './fixed-args.js';
import { outside } from '../../contract/outside.js';
import { LinkedSet } from '../../contract/linked-set.js';
import { CALL_MS, retryDelay } from '../../contract/retry.js';
import { withSource } from '../script.js';

/** The least speed that is expected of a connection, in bytes per ms: 0.5 Mbit/s. */
const LEAST_PER_MS = 64;
/** A connection may become this many times slower than it was measured. */
const SLOWER = 4;
/** The measured speed grows at most by this factor at a time, because a short burst says little about the connection. */
const GROWTH = 1.5;
/** The speed of the connection is measured only with commands of at least this many bytes. */
const MEASURED = 16 * 1024;

/** Internal field of Node's sockets: bytes that the kernel has not taken yet. */
interface Handle {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** Watches the bytes on one connection. A connection is silent while no byte moves. A transfer that takes long is not silent. */
class Traffic {
  /** When a byte was last seen to move, by `performance.now()`. */
  movedAt = 0;
  /** Bytes of commands that have no answer yet. */
  private unanswered = 0;
  private perMs = LEAST_PER_MS;
  private read = 0;
  private written = 0;
  private queued = 0;

  /** Resets the measurements for a new connection. */
  begin(): void {
    this.perMs = LEAST_PER_MS;
    this.movedAt = performance.now();
  }

  sent(bytes: number): void {
    this.unanswered += bytes;
  }

  /** Called when a command of this size ended. */
  ended(bytes: number, sentAt: number): void {
    this.unanswered -= bytes;
    if (bytes < MEASURED) return;
    const measured = bytes / Math.max(performance.now() - sentAt, 0.1);
    this.perMs = Math.max(LEAST_PER_MS, Math.min(measured, this.perMs * GROWTH));
  }

  look({ stream }: Redis, now: number): void {
    const { bytesRead, writableLength, _handle: handle } = stream as Redis['stream'] & Handle;
    const queued = handle?.writeQueueSize ?? 0;
    if (bytesRead !== this.read || writableLength < this.written || queued < this.queued) this.movedAt = now;
    this.read = bytesRead;
    this.written = writableLength;
    this.queued = queued;
  }

  /**
   * How many ms a healthy connection may look silent. The process cannot see bytes that the kernel has accepted and not delivered
   * yet.
   */
  get unseenMs(): number {
    return (Math.max(0, this.unanswered - this.written) / this.perMs) * SLOWER;
  }
}

/** How often a connection checks for calls past their deadline. So a call is rejected at most this long after its deadline. */
const WATCH_MS = 100;
/** How long a new connection may be silent while it is set up. `connectTimeout` only covers the TCP handshake. */
const SETUP_MS = 3000;
/** A check that is this late means that the event loop was blocked. */
const BLOCKED_MS = 200;
/** With these replies a server refuses the user, or all writes. The connection option or the server must be changed. */
const REFUSALS = new Set(['WRONGPASS', 'NOAUTH', 'NOPERM', 'READONLY']);
/** How long the trial transaction may take. */
const TRY_MS = 3000;
/** If no replica refused a write for this long, the next one is left at once. */
const REPLICA_MS = 10_000;
/** How long the calls that a replica has not answered may delay leaving it. */
const LEAVE_MS = 500;
/** How long `close` waits for the client to end. */
const CLOSE_MS = 2000;

/**
 * One connection to Redis. It adds what ioredis lacks. A socket that is silent for as long as a call allows is destroyed, so that
 * it reconnects. No caller waits beyond its deadline. Nothing is resent without the caller knowing. A client that has given up is
 * replaced. Every failure says whether the call may have reached Redis.
 */
export class Link implements Sender {
  private client: Redis | null = null;
  private readonly pending = new LinkedSet<FlatCommand>();
  private readonly traffic = new Traffic();
  private watch: NodeJS.Timeout | null = null;
  private readonly waiters = new Set<() => void>();
  private closed = false;
  private lastError: Error | undefined;
  private up = false;
  /** Set while the server must not be used. */
  private refusal: GodwitError | null = null;
  /** Set while the server does not have the database of the connection option. ioredis would continue in another database. */
  private noDatabase: RedisRefusedError | null = null;
  /** Whether this connection allows transactions. Null: not tried yet. */
  private canTransact: boolean | null = null;
  private failedGreetings = 0;
  /** When this connection last left a replica, and how many times it has. */
  private readonly replicas = { leftAt: -Infinity, times: 0 };
  /** Set while this connection to a replica only waits for the answers to its calls. */
  private leaving: { readonly client: Redis; readonly stream: unknown; readonly why: Error } | null = null;
  /** A connection that calls share is not cut because one of them has little time left. */
  private readonly leastSilentMs: number;
  private lookedAt = performance.now();
  /** The last check after which sockets were read, of those that came late. */
  private readAfter = 0;
  /** While a connection is set up: how many bytes had arrived at the last check, and since when no more have come. */
  private setup: { readonly bytes: number; readonly since: number } | null = null;

  constructor(
    private readonly role: LinkEvent['role'],
    private readonly make: () => Redis,
    private readonly tell: (event: LinkEvent) => void,
    /** Runs on every new connection before it counts as up. If it throws, that is an error of the connection. */
    private readonly greet?: (link: Link) => Promise<void>,
    /** Called with the first word and the text of every refusal. */
    private readonly refused?: (reply: string, message: string) => void,
    private readonly watchMs = WATCH_MS,
    /** Each command is sent inside this function. */
    private readonly internal?: Internal,
  ) {
    this.leastSilentMs = role === 'command' ? CALL_MS : 0;
  }

  get isUp(): boolean {
    return this.up;
  }

  /** Whether the server must not be used. */
  get isRefused(): boolean {
    return this.refusal !== null;
  }

  open(): void {
    if (this.client || this.closed) return;
    const client = this.apart(this.make);
    this.client = client;
    // The socket keeps the process alive while a call waits, so this timer need not.
    this.watch ??= outside(() => setInterval(() => this.look(), this.watchMs)).unref();
    client.on('connect', () => (this.noDatabase = null));
    client.on('error', (error: Error) => {
      if (isOfSelect(error)) this.noDatabase = noDatabase(error);
      this.report(error);
    });
    client.on('ready', () => void this.ready(client));
    client.on('close', () => this.down(client));
    client.on('end', () => this.replace(client));
    if (client.status === 'ready') void this.ready(client);
    else if (client.status === 'wait') this.apart(() => client.connect()).catch(() => undefined); // reported by 'error'
  }

  /**
   * Opens a connection outside of the caller's async context. Otherwise the socket, and commands that ioredis sends by itself, would
   * keep that context.
   */
  private apart<T>(work: () => T): T {
    const { internal } = this;
    return outside(internal ? () => internal(work) : work);
  }

  /**
   * Sends one command. Rejects with `RedisUnavailableError` or `RedisRefusedError`: if there is no connection for `silentMs`, if
   * no byte moves on it for that long, and in any case at `until` (by `performance.now()`).
   */
  send(verb: string, name: string, args: Arg[], silentMs: number, until = Infinity): Promise<any> {
    if (this.up) return this.write(verb, name, args, silentMs, until);
    const deadline = Math.min(performance.now() + silentMs, until);
    return this.whenUp(verb, deadline).then(() => this.write(verb, name, args, silentMs, until));
  }

  /** Like `send`, to a cluster node that is about to own the slot. Such a node serves the call only right after `ASKING`. */
  async sendAsking(verb: string, name: string, args: Arg[], silentMs: number, until: number): Promise<any> {
    if (!this.up) await this.whenUp(verb, Math.min(performance.now() + silentMs, until));
    // Both are written at once, so no other command comes between them.
    const [, reply] = await Promise.all([
      this.write(verb, 'asking', [], silentMs, until),
      this.write(verb, name, args, silentMs, until),
    ]);
    return reply;
  }

  /** Like `send`, without waiting for the connection to be up. */
  write(verb: string, name: string, args: Arg[], silentMs: number, until = Infinity): Promise<any> {
    const client = this.client;
    if (!client) return Promise.reject(new NotRunningError(verb));
    const command = new FlatCommand(name, args, verb, silentMs, until, this);
    this.pending.add(command);
    try {
      const { internal } = this;
      const answer = (
        internal ? internal(() => client.sendCommand(command)) : client.sendCommand(command)
      ) as Promise<unknown>;
      this.traffic.sent(command.size);
      if (answer !== command.promise) return this.answeredBy(answer, command);
    } catch (error) {
      command.reject(error as Error);
    }
    return command.promise;
  }

  /** A tool that wraps ioredis may answer instead of it. Then its answer counts, with the same deadlines. */
  private answeredBy(answer: Promise<unknown>, sent: FlatCommand): Promise<unknown> {
    sent.leaveSender();
    const command = new FlatCommand(sent.name, [], sent.verb, sent.silentMs, sent.until, this);
    this.pending.add(command);
    Promise.resolve(answer).then(
      (reply) => command.give(reply),
      (error: Error) => command.reject(error),
    );
    return command.promise;
  }

  /** Called by each command when it ends. */
  ended(command: FlatCommand): void {
    this.pending.delete(command);
    this.traffic.ended(command.size, command.sentAt);
    if (this.leaving && this.pending.size === 0) this.leave();
  }

  /**
   * Sends commands as one transaction, and resolves to the reply of each. Null if the connection is down, if it is not known yet
   * to allow transactions, or if there are no commands. Then nothing is sent.
   */
  transact(
    verb: string,
    commands: () => readonly (readonly [name: string, args: Arg[]])[] | null,
    silentMs: number,
    until = Infinity,
  ): Promise<unknown[]> | null {
    if (!this.up) return null;
    if (this.canTransact === null) this.tryTransaction();
    if (!this.canTransact) return null;
    const made = commands();
    if (!made) return null;
    const queued = [this.write(verb, 'multi', [], silentMs, until)];
    for (const [name, args] of made) queued.push(this.write(verb, name, args, silentMs, until));
    // The reply to EXEC reports all failures.
    for (const one of queued) one.catch(() => undefined);
    return this.write(verb, 'exec', [], silentMs, until);
  }

  /** Tries an empty transaction first: if the user may not run MULTI, the commands after it would run one by one. */
  private tryTransaction(): void {
    this.canTransact = false;
    const { client } = this;
    const both = [this.write('open', 'multi', [], TRY_MS), this.write('open', 'exec', [], TRY_MS)];
    Promise.all(both).then(
      () => {
        if (client === this.client && this.up) this.canTransact = true;
      },
      () => undefined,
    );
  }

  /** Destroys the socket. All calls in flight fail now, and a new connection is made. */
  drop(why: string | Error): void {
    const { client } = this;
    if (client?.status !== 'ready') return;
    const error = typeof why === 'string' ? new Error(why) : why;
    client.stream?.destroy(error);
    // From now on calls wait for the new connection.
    this.lastError ??= error;
    this.down(client);
  }

  /**
   * The calls in flight are refused, too. Without their answers it would be unknown whether they had an effect. As long as the address
   * leads to a replica, a new connection finds the replica again. So each of them is used for longer.
   */
  private leaveReplica(message: string): void {
    const { replicas } = this;
    const agoMs = performance.now() - replicas.leftAt;
    if (agoMs > REPLICA_MS) replicas.times = 0;
    if (agoMs < retryDelay(replicas.times)) return;
    replicas.leftAt = performance.now();
    replicas.times += 1;
    const { client } = this;
    if (!client) return;
    const why = Object.assign(new Error(message), { name: 'ReplyError' });
    const leaving = { client, stream: client.stream, why };
    this.leaving = leaving;
    this.lastError = why;
    this.down(client);
    setTimeout(() => this.leaving === leaving && this.leave(), LEAVE_MS).unref();
  }

  private leave(): void {
    const { client, stream, why } = this.leaving!;
    this.leaving = null;
    if (client === this.client && stream === client.stream) this.drop(why);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    const client = this.client;
    this.client = null;
    this.up = false;
    if (this.watch) clearInterval(this.watch);
    this.watch = null;
    for (const command of this.pending) {
      const why = 'the connection was closed before the answer came';
      command.fail(new RedisUnavailableError(command.verb, 'unknown', why));
    }
    this.wake();
    if (client) await end(client);
  }

  /** The client may come from a factory of the application. If the factory throws here, that is an error of the connection. */
  private openLater(): void {
    setTimeout(() => {
      try {
        this.open();
      } catch (error) {
        this.report(error as Error);
        this.openLater();
      }
    }, 500).unref();
  }

  private async ready(client: Redis): Promise<void> {
    if (client !== this.client) return;
    readDirectly(client);
    this.traffic.begin();
    this.leaving = null;
    try {
      if (this.noDatabase) throw this.noDatabase;
      await this.greet?.(this);
      this.refusal = null;
    } catch (error) {
      if (
        error instanceof UnsupportedRedisError ||
        error instanceof QueueFormatError ||
        error === this.noDatabase
      )
        this.refusal = error as GodwitError;
      this.report(error as Error);
      this.wake();
      if (!this.refusal) this.greetLater(client);
      return;
    }
    if (client !== this.client || client.status !== 'ready') return;
    if (this.leaving || client.stream?.destroyed) return;
    this.up = true;
    this.failedGreetings = 0;
    this.lastError = undefined;
    this.tell({ role: this.role, state: 'up' });
    this.wake();
  }

  /** Reconnects after a pause, because only a new connection can try the greeting again. */
  private greetLater(client: Redis): void {
    const { stream } = client;
    setTimeout(() => {
      if (client === this.client && stream === client.stream) this.drop('the greeting failed');
    }, retryDelay(++this.failedGreetings)).unref();
  }

  private down(client: Redis): void {
    if (client !== this.client || !this.up) return;
    this.up = false;
    this.canTransact = null;
    this.tell({ role: this.role, state: 'down', error: this.lastError });
  }

  /** Replaces a client that has ended, because it never reconnects. */
  private replace(client: Redis): void {
    if (this.closed || client !== this.client) return;
    this.down(client);
    this.client = null;
    this.openLater();
  }

  private report(error: Error): void {
    withoutCommand(error);
    // ioredis reports a TLS handshake that nobody answers like a host that does not answer.
    if (error.message === 'connect ETIMEDOUT' && this.client?.options.tls)
      error.message += ': the connection uses TLS, but perhaps this port does not';
    this.lastError = error;
    if (!this.closed) this.tell({ role: this.role, state: this.up ? 'up' : 'down', error });
  }

  /** Resolves when calls can be written. Rejects at the deadline, or if waiting is useless. */
  whenUp(verb: string, deadline: number): Promise<void> {
    if (this.up) return Promise.resolve();
    if (this.closed) return Promise.reject(new NotRunningError(verb));
    if (this.refusal) return Promise.reject(this.refusal);
    this.open();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => done(), Math.max(0, deadline - performance.now()));
      const done = () => {
        clearTimeout(timer);
        this.waiters.delete(done);
        if (this.up) resolve();
        else if (this.refusal) reject(this.refusal);
        else if (this.closed) reject(new NotRunningError(verb));
        else reject(this.notUp(verb));
      };
      this.waiters.add(done);
    });
  }

  private notUp(verb: string): GodwitError {
    const { lastError } = this;
    const refused = lastError?.name === 'ReplyError' ? refusalOf(verb, lastError) : lastError;
    if (refused instanceof RedisRefusedError && REFUSALS.has(refused.reply)) return refused;
    const why = `no connection to Redis in time${lastError ? ` (${lastError.message})` : ''}`;
    return new RedisUnavailableError(verb, 'no', why, { cause: lastError });
  }

  private wake(): void {
    for (const waiter of this.waiters) waiter();
  }

  /**
   * Checks deadlines. After the event loop was blocked, timers run before sockets are read, and answers may be unread. So that check only
   * considers what was late before sockets were read last: nothing after a single block, and the rest one turn later in a process that
   * blocks its event loop in each turn.
   */
  private look(): void {
    const now = performance.now();
    const wasBlocked = now - this.lookedAt > this.watchMs * 2 + BLOCKED_MS;
    this.lookedAt = now;
    const asOf = wasBlocked ? this.readAfter : now;
    // Runs after sockets were read.
    if (wasBlocked) setImmediate(() => (this.readAfter = now));
    this.checkDeadlines(now, asOf);
    this.checkSetup(now, asOf);
  }

  private checkDeadlines(now: number, asOf: number): void {
    const { client, traffic } = this;
    if (client?.stream) traffic.look(client, now);
    const { movedAt, unseenMs } = traffic;
    let late = false;
    for (const command of this.pending) {
      const { until, sentAt, silentMs, verb } = command;
      const isSilent = Math.max(sentAt, movedAt) + silentMs + unseenMs <= asOf;
      if (!isSilent && until > asOf) continue;
      const error = new RedisUnavailableError(verb, 'unknown', 'Redis did not answer in time');
      const isCut = isSilent && silentMs >= this.leastSilentMs;
      if (isCut) command.fail(error);
      else command.expire(error, this.leastSilentMs);
      late ||= isCut;
    }
    if (late) {
      this.report(new Error(`the ${this.role} connection went silent and was cut`));
      this.drop('no answer before the deadline');
    }
  }

  private checkSetup(now: number, asOf: number): void {
    const { client } = this;
    if (client?.status !== 'connect' || !client.stream) {
      this.setup = null;
      return;
    }
    const bytes = client.stream.bytesRead;
    if (this.setup?.bytes !== bytes) {
      this.setup = { bytes, since: now };
    } else if (asOf - this.setup.since > SETUP_MS) {
      this.setup = null;
      this.report(new Error(`the ${this.role} connection went silent while it was set up and was cut`));
      client.stream.destroy();
    }
  }

  /** The error that a caller gets for an error of ioredis. */
  explain(verb: string, error: Error): GodwitError {
    if (error instanceof GodwitError) return error;
    withoutCommand(error);
    const message = error.message ?? String(error);
    if (error.name === 'ReplyError') {
      const refused = refusalOf(verb, error);
      const { reply: word } = refused;
      // A primary that became a replica keeps its sockets. Only a new connection finds the new primary.
      if (word === 'READONLY' || word === 'UNBLOCKED') this.leaveReplica(message);
      this.refused?.(word, message);
      return refused;
    }
    if (message.startsWith("Stream isn't writeable")) {
      return new RedisUnavailableError(verb, 'no', 'the connection to Redis is down', { cause: error });
    }
    // This message of ioredis is about an option that Godwit sets.
    const why = error.name === 'MaxRetriesPerRequestError' ? this.lastError?.message : message;
    return new RedisUnavailableError(verb, 'unknown', `the connection broke${why ? ` (${why})` : ''}`, {
      cause: this.lastError,
    });
  }
}

function refusalOf(verb: string, error: Error): RedisRefusedError {
  const { message } = error;
  const word = /^-?([A-Z]+)\b/.exec(message)?.[1] ?? 'ERR';
  // Scripts check types before they write. So after a write only a command that the script may not run can fail.
  const midway = (word === 'ERR' || word === 'NOPERM') && message.includes('on @user_script:');
  const text = withSource(message, verb);
  return new RedisRefusedError(verb, word, text, { cause: error }, midway ? 'unknown' : 'no');
}

function isOfSelect(error: Error & { command?: { name?: unknown } }): boolean {
  return error.name === 'ReplyError' && error.command?.name === 'select';
}

function noDatabase(error: Error): RedisRefusedError {
  const reply = /^[A-Z]+/.exec(error.message)?.[0] ?? 'ERR';
  const advice =
    reply === 'ERR' ? ' (the connection names a database that this server does not have)' : undefined;
  return new RedisRefusedError('connect', reply, error.message, { cause: error }, 'no', advice);
}

/**
 * ioredis adds its socket listener with `prependListener`, which does not start the flowing mode. Then each answer is queued and
 * delivered a tick later. Adding and removing a listener with `on` starts it.
 */
function readDirectly({ stream }: Redis): void {
  const unused = () => undefined;
  stream?.on('data', unused).off('data', unused);
}

/** Removes the failed command from the error. It contains all arguments: the data of jobs, or the password of AUTH. */
function withoutCommand(error: Error & { command?: unknown }): void {
  if (error.command !== undefined) delete error.command;
}

function end(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    // ioredis emits no 'end' for a client without a socket.
    const isConnected = !['wait', 'close', 'reconnecting', 'end'].includes(client.status);
    const late = setTimeout(resolve, CLOSE_MS);
    const ended = () => {
      clearTimeout(late);
      resolve();
    };
    client.once('end', ended);
    client.disconnect();
    if (!isConnected) return ended();
    // ioredis would wait two seconds for a silent socket. All callers have been answered, so it is destroyed now.
    client.stream?.destroy();
  });
}
