import { randomUUID } from 'node:crypto';
import { createConnection, type Socket } from 'node:net';
import { latch } from '../wait.js';
import { ByteLimit, Lane } from './lane.js';
import { paced, type Line } from './line.js';
import { encodeRequest, matches, RequestSplitter, type Match } from './requests.js';

/** `up` is from the client to Redis, `down` from Redis to the client. */
export type Direction = 'up' | 'down';

/** A reply to drop, and how many times. */
export class ReplyRule {
  /** How many replies it has dropped. */
  hits = 0;
  private left: number;
  private readonly spent = latch('a reply to cut');

  constructor(
    readonly match: Match,
    private readonly times: number,
  ) {
    this.left = times;
  }

  /** Resolves when all of them are dropped. */
  get done(): Promise<void> {
    return this.spent.promise;
  }

  /** Whether the reply to this request must be dropped. */
  claims(request: Buffer): boolean {
    if (this.left === 0 || !matches(request, this.match)) return false;
    this.left -= 1;
    return true;
  }

  strike(): void {
    this.hits += 1;
    if (this.hits === this.times) this.spent.open();
  }
}

/** The faults of one connection, or of all connections. */
export class Faults {
  replies: ReplyRule[] = [];
  limits: Record<Direction, ByteLimit[]> = { up: [], down: [] };

  clear(): void {
    this.replies = [];
    this.limits = { up: [], down: [] };
  }
}

export interface ConnectionHost {
  readonly faults: Faults;
  /** The bandwidth that all connections share. */
  readonly lines: Readonly<Record<Direction, Line>>;
  onRequest(connection: CutConnection, request: Buffer): void;
  onCut(connection: CutConnection): void;
  onClose(connection: CutConnection): void;
}

/** The connection of one client to Redis through the proxy. */
export class CutConnection {
  private readonly faults = new Faults();
  private readonly splitter = new RequestSplitter();
  private readonly server: Socket;
  private readonly lanes: Record<Direction, Lane>;
  private fence: Fence | undefined;

  constructor(
    private readonly client: Socket,
    target: { host: string; port: number },
    private readonly host: ConnectionHost,
  ) {
    this.server = createConnection({ ...target, noDelay: true });
    const lane = (to: Socket, direction: Direction) =>
      new Lane(
        to,
        () => [...this.faults.limits[direction], ...host.faults.limits[direction]],
        () => this.cut(),
      );
    this.lanes = { up: lane(this.server, 'up'), down: lane(client, 'down') };
    client.on(
      'data',
      paced(client, host.lines.up, (chunk) => this.fromClient(chunk)),
    );
    this.server.on(
      'data',
      paced(this.server, host.lines.down, (chunk) => this.fromServer(chunk)),
    );
    for (const [socket, other] of [
      [client, this.lanes.up],
      [this.server, this.lanes.down],
    ] as const) {
      socket.on('error', () => {});
      socket.on('close', () => {
        other.push('end');
        if (client.destroyed && this.server.destroyed) host.onClose(this);
      });
    }
  }

  /** Bytes that were delivered. */
  get bytes(): Readonly<Record<Direction, number>> {
    return { up: this.lanes.up.bytes, down: this.lanes.down.bytes };
  }

  /** Like `Cut.cutOnReply`, for this connection. */
  cutOnReply(match: Match, times = 1): ReplyRule {
    const rule = new ReplyRule(match, times);
    this.faults.replies.push(rule);
    return rule;
  }

  /** Like `Cut.cutAfterBytes`, for this connection. */
  cutAfterBytes(direction: Direction, bytes: number): ByteLimit {
    const limit = new ByteLimit(bytes);
    this.faults.limits[direction].push(limit);
    return limit;
  }

  /** Like `Cut.delay`, for this connection. */
  delay(ms: number): void {
    this.lanes.up.delayMs = ms;
    this.lanes.down.delayMs = ms;
  }

  /** Like `Cut.blackhole`, for this connection. */
  blackhole(): void {
    this.lanes.up.hold(true);
    this.lanes.down.hold(true);
  }

  /** Ends every fault of this connection; held bytes are delivered. */
  heal(): void {
    this.faults.clear();
    this.delay(0);
    this.lanes.up.hold(false);
    this.lanes.down.hold(false);
  }

  /** Ends both sides at once; bytes that were not delivered yet are lost. */
  destroy(): void {
    this.lanes.up.clear();
    this.lanes.down.clear();
    this.client.destroy();
    this.server.destroy();
  }

  private cut(): void {
    this.host.onCut(this);
    this.destroy();
  }

  private fromClient(chunk: Buffer): void {
    for (const request of this.splitter.push(chunk)) {
      // Requests behind the one whose reply is dropped never reach the server.
      if (this.fence) return;
      this.host.onRequest(this, request);
      const rules = [...this.faults.replies, ...this.host.faults.replies];
      const rule = rules.find((candidate) => candidate.claims(request));
      if (rule) this.fence = this.sendFenced(request, rule);
      else this.lanes.up.push(request);
    }
  }

  /**
   * Sends two requests of the proxy, one before and one after, to find which bytes are the reply, and to know that
   * Redis sent it.
   */
  private sendFenced(request: Buffer, rule: ReplyRule): Fence {
    const fence = new Fence(rule);
    for (const bytes of [fence.before.request, request, fence.behind.request]) this.lanes.up.push(bytes);
    return fence;
  }

  private fromServer(chunk: Buffer): void {
    if (!this.fence) {
      this.lanes.down.push(chunk);
      return;
    }
    const { earlier, complete } = this.fence.read(chunk);
    if (earlier) this.lanes.down.push(earlier);
    if (!complete) return;
    // End the client through its lane, after the replies that are still on their way.
    this.server.destroy();
    this.host.onCut(this);
    this.fence.rule.strike();
  }
}

class Fence {
  readonly before = ping();
  readonly behind = ping();
  private seen = Buffer.alloc(0);
  private passed = false;

  constructor(readonly rule: ReplyRule) {}

  /**
   * `earlier`: replies to requests before this one, for the client. `complete`: the reply has arrived and can be
   * dropped.
   */
  read(chunk: Buffer): { earlier?: Buffer; complete: boolean } {
    this.seen = Buffer.concat([this.seen, chunk]);
    let earlier: Buffer | undefined;
    const at = this.passed ? -1 : this.seen.indexOf(this.before.reply);
    if (at >= 0) {
      this.passed = true;
      earlier = this.seen.subarray(0, at);
      this.seen = this.seen.subarray(at + this.before.reply.length);
    }
    return { earlier, complete: this.passed && this.seen.includes(this.behind.reply) };
  }
}

function ping(): { request: Buffer; reply: Buffer } {
  const token = randomUUID();
  return { request: encodeRequest(['PING', token]), reply: Buffer.from(`$${token.length}\r\n${token}\r\n`) };
}
