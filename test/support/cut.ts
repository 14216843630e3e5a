import { createServer, type Server } from 'node:net';
import { freePort } from '../../tools/free-port.mjs';
import { atEnd } from './cleanup.js';
import { CutConnection, Faults, ReplyRule, type ConnectionHost, type Direction } from './cut/connection.js';
import { ByteLimit } from './cut/lane.js';
import { Line } from './cut/line.js';
import { matches, type Match } from './cut/requests.js';
import { latch, within, type WaitOptions } from './wait.js';

/**
 * A TCP proxy in front of the Redis at `url`, to break the line on purpose; closed at the end of the test. Give `cut.url`
 * to the code under test. Each fault exists for all connections (here) and for one (`CutConnection`).
 */
export async function startCut(url: string): Promise<Cut> {
  const cut = new Cut(new URL(url), await freePort());
  atEnd(() => cut.close());
  await cut.listen();
  return cut;
}

export class Cut implements ConnectionHost {
  /** Connections that are open, the oldest first. */
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
   * The reply of the next request that matches is lost: Redis gets the request and runs it, replies to earlier requests
   * still arrive, then both sides are cut. Requests sent behind it never reach Redis. Not for requests inside
   * `MULTI`. `times`: so many requests.
   */
  cutOnReply(match: Match, times = 1): ReplyRule {
    const rule = new ReplyRule(match, times);
    this.faults.replies.push(rule);
    return rule;
  }

  /**
   * Cuts the connection that carries the last of so many more bytes in this direction, counted over all connections.
   * The bytes before it are delivered, also the first part of a request or reply.
   * At least 1; 0 would never be reached.
   */
  cutAfterBytes(direction: Direction, bytes: number): ByteLimit {
    const limit = new ByteLimit(bytes);
    this.faults.limits[direction].push(limit);
    return limit;
  }

  /**
   * Everything takes this much longer in each direction, in order, so a round trip takes twice as much longer.
   * Holds for open connections and new ones.
   * 0 ends it for what is sent from now on.
   */
  delay(ms: number): void {
    this.delayMs = ms;
    for (const connection of this.connections) connection.delay(ms);
  }

  /**
   * Limits the bandwidth of each direction, in bytes per second. All connections share it. What does not fit stays with the
   * sender: the proxy stops reading from its socket, so the buffers of the kernel fill up as they do on a real line.
   * A direction without a number has no limit; `{}` takes both limits away.
   */
  throttle(bytesPerSecond: Partial<Record<Direction, number>>): void {
    this.lines.up.bytesPerSecond = bytesPerSecond.up ?? Infinity;
    this.lines.down.bytesPerSecond = bytesPerSecond.down ?? Infinity;
  }

  /**
   * Open connections go silent: nothing arrives and nothing is closed, as behind a firewall that has forgotten them.
   * New connections work.
   * `heal()` delivers what was held, as a network does with packets that took a long way round.
   */
  blackhole(): void {
    for (const connection of this.connections) connection.blackhole();
  }

  /**
   * New connections are refused, as with a server that is down.
   * Open ones go on; `drop()` ends those.
   * `heal()` accepts again, on the same port.
   */
  refuse(): void {
    this.server?.close();
    this.server = undefined;
  }

  /** Ends every open connection at once; what is on its way is lost. New ones work. */
  drop(): void {
    for (const connection of this.connections.slice()) connection.destroy();
  }

  /** Takes every fault back. Connections that were cut stay so. */
  async heal(): Promise<void> {
    this.faults.clear();
    this.delayMs = 0;
    this.throttle({});
    for (const connection of this.connections.slice()) connection.heal();
    if (!this.server) await this.listen();
  }

  /** Resolves with the connection that sends the next request that matches: a name by `CLIENT SETNAME`, a command, a key. */
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
