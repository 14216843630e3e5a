import { createServer, type Server } from 'node:net';
import { freePort } from '../../tools/free-port.mjs';
import { atEnd } from './cleanup.js';
import { CutConnection, Faults, ReplyRule, type ConnectionHost, type Direction } from './cut/connection.js';
import { ByteLimit } from './cut/lane.js';
import { Line } from './cut/line.js';
import { matches, type Match } from './cut/requests.js';
import { latch, within, type WaitOptions } from './wait.js';

/**
 * A TCP proxy in front of the Redis at `url` that can break connections. It is closed at the end of the test. Give
 * `cut.url` to the code under test. Each fault exists for all connections (here) and for a single one
 * (`CutConnection`).
 */
export async function startCut(url: string): Promise<Cut> {
  const cut = new Cut(new URL(url), await freePort());
  atEnd(() => cut.close());
  await cut.listen();
  return cut;
}

export class Cut implements ConnectionHost {
  /** Open connections, the oldest first. */
  readonly connections: CutConnection[] = [];
  readonly counters = { accepted: 0, requests: 0, cuts: 0 };
  readonly faults = new Faults();
  readonly lines: Record<Direction, Line> = { up: new Line(), down: new Line() };
  private readonly watches: { match: Match; found(connection: CutConnection): void }[] = [];
  private server: Server | undefined;
  private delayMs = 0;

  constructor(
    private readonly target: URL,
    readonly port: number,
  ) {}

  /** The address of the proxy, with the user and password of the target. */
  get url(): string {
    const url = new URL(this.target);
    url.hostname = '127.0.0.1';
    url.port = String(this.port);
    return url.href;
  }

  /**
   * Drops the reply to the next request that matches: Redis receives the request and runs it, replies to earlier
   * requests still arrive, then both sides are cut. Requests sent after it never reach Redis. Does not work for
   * requests inside `MULTI`. `times`: how many requests.
   */
  cutOnReply(match: Match, times = 1): ReplyRule {
    const rule = new ReplyRule(match, times);
    this.faults.replies.push(rule);
    return rule;
  }

  /**
   * Cuts the connection that carries the last of `bytes` more bytes in this direction, counted over all connections.
   * The bytes before are delivered, even if they end inside a request or reply. At least 1.
   */
  cutAfterBytes(direction: Direction, bytes: number): ByteLimit {
    const limit = new ByteLimit(bytes);
    this.faults.limits[direction].push(limit);
    return limit;
  }

  /**
   * Delays everything by this time in each direction, in order, so a round trip takes twice the delay longer. Applies
   * to open and new connections. 0 ends the delay for bytes sent from now on.
   */
  delay(ms: number): void {
    this.delayMs = ms;
    for (const connection of this.connections) connection.delay(ms);
  }

  /**
   * Limits the bandwidth of each direction, in bytes per second, shared by all connections. The proxy stops reading
   * from the socket of a sender that is too fast, so the kernel's buffers fill up as on a real network. A direction
   * without a number has no limit; `{}` removes both limits.
   */
  throttle(bytesPerSecond: Partial<Record<Direction, number>>): void {
    this.lines.up.bytesPerSecond = bytesPerSecond.up ?? Infinity;
    this.lines.down.bytesPerSecond = bytesPerSecond.down ?? Infinity;
  }

  /**
   * Open connections go silent: nothing arrives and nothing is closed, like behind a firewall that dropped their state.
   * New connections work. `heal()` delivers the held bytes, like a network does with delayed packets.
   */
  blackhole(): void {
    for (const connection of this.connections) connection.blackhole();
  }

  /**
   * Refuses new connections, like a server that is down. Open ones go on; `drop()` ends those. `heal()` accepts
   * connections again, on the same port.
   */
  refuse(): void {
    this.server?.close();
    this.server = undefined;
  }

  /** Ends every open connection at once; bytes that were not delivered yet are lost. New connections work. */
  drop(): void {
    for (const connection of this.connections.slice()) connection.destroy();
  }

  /** Ends every fault. Connections that were cut stay closed. */
  async heal(): Promise<void> {
    this.faults.clear();
    this.delayMs = 0;
    this.throttle({});
    for (const connection of this.connections.slice()) connection.heal();
    if (!this.server) await this.listen();
  }

  /**
   * Resolves with the connection that sends the next request that matches: a name (by `CLIENT SETNAME`), a command, a
   * key.
   */
  carrying(match: Match, options?: WaitOptions): Promise<CutConnection> {
    const found = latch<CutConnection>();
    this.watches.push({ match, found: (connection) => found.open(connection) });
    return within(found.promise, { what: `a request with ${String(match)}`, ...options });
  }

  async listen(): Promise<void> {
    const server = createServer((client) => {
      client.setNoDelay(true);
      const target = { host: this.target.hostname, port: Number(this.target.port || 6379) };
      const connection = new CutConnection(client, target, this);
      connection.delay(this.delayMs);
      this.counters.accepted += 1;
      this.connections.push(connection);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, '127.0.0.1', resolve);
    });
    this.server = server;
  }

  close(): void {
    this.refuse();
    this.drop();
  }

  onRequest(connection: CutConnection, request: Buffer): void {
    this.counters.requests += 1;
    for (const watch of this.watches.filter(({ match }) => matches(request, match))) {
      this.watches.splice(this.watches.indexOf(watch), 1);
      watch.found(connection);
    }
  }

  onCut(): void {
    this.counters.cuts += 1;
  }

  onClose(connection: CutConnection): void {
    const at = this.connections.indexOf(connection);
    if (at >= 0) this.connections.splice(at, 1);
  }
}
