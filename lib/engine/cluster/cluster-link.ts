import { NotRunningError, RedisRefusedError, RedisUnavailableError } from '../../errors.js';
import type { ClientRole, ClusterPlan, Internal } from '../wire/clients.js';
import type { LinkEvent } from '../../contract/engine.js';
import { Link } from '../wire/link.js';
import type { Arg } from '../wire/fixed-args.js';
import { pause, retryDelay } from '../../contract/retry.js';
import { nameOf, readRedirection, slotOf, SlotMap, type Address, type SlotRange } from './slot-map.js';

/** How long one node may take to report the slots. */
const ASK_MS = 1000;
/** Longest pause between two reads of the slots while a master is unreachable. A failover takes seconds. */
const LOOK_MS = 250;
/** A call is not repeated if less time than this is left. */
const LEAST_MS = 250;
/** A call that is redirected more often than this runs in a circle, or the slots move faster than we can follow. */
const MAX_REDIRECTS = 5;
/** Replies of a node that cannot serve a slot at the moment. */
const PASSING = new Set(['TRYAGAIN', 'CLUSTERDOWN', 'MASTERDOWN']);

/** How long the connection to a node without slots is kept after an `ASK` named it: the slot may not have moved yet. */
const ASKED_MS = 10_000;

interface Node {
  readonly address: Address;
  readonly link: Link;
  /** When an `ASK` last named it, by `performance.now()`. */
  askedAt?: number;
}

/**
 * Sends the commands of one process to a Redis Cluster: each call to the master of its key, over one `Link` per master with all
 * its guarantees. The slots are read again when a master is unreachable, and updated by `MOVED`. A redirected call was not run by
 * the first node.
 */
export class ClusterLink {
  private slots = new SlotMap();
  private readonly nodes = new Map<string, Node>();
  private readonly waiters = new Set<() => void>();
  private looking = false;
  private timer: NodeJS.Timeout | undefined;
  private looks = 0;
  private opened = false;
  private closed = false;
  private lastError: Error | undefined;

  constructor(
    private readonly role: ClientRole,
    private readonly plan: ClusterPlan,
    private readonly tell: (event: LinkEvent) => void,
    private readonly greet?: (link: Link) => Promise<void>,
    private readonly watchMs?: number,
    private readonly internal?: Internal,
  ) {}

  /** Whether every master can be reached. */
  get isUp(): boolean {
    return !this.slots.isEmpty && this.reachable().length === this.slots.masters().length;
  }

  open(): void {
    if (this.opened || this.closed) return;
    this.opened = true;
    void this.look();
  }

  /** Like `Link.send`. A call without a key goes to any master, once all masters are reachable or the time is over. */
  async send(
    verb: string,
    name: string,
    args: Arg[],
    silentMs: number,
    until = Infinity,
    near?: string,
  ): Promise<any> {
    const deadline = Math.min(performance.now() + silentMs, until);
    const slot = near === undefined ? slotOf(name, args) : slotOf('get', [near]);
    let redirects = 0;
    let asked: Node | null = null;
    for (let tries = 1; ; tries++) {
      const node = asked ?? (await this.nodeFor(verb, slot, deadline));
      try {
        if (asked) return await node.link.sendAsking(verb, name, args, silentMs, until);
        if (!node.link.isUp) await node.link.whenUp(verb, deadline);
        return await node.link.write(verb, name, args, silentMs, until);
      } catch (error) {
        asked = null;
        // The node is not a master of any slot, or no longer, and the call was not sent.
        if (error instanceof NotRunningError && !this.closed) continue;
        if (!(error instanceof RedisRefusedError)) throw error;
        asked = this.redirected(node, error);
        const left = deadline - performance.now();
        const delay = PASSING.has(error.reply) ? Math.min(retryDelay(tries), LOOK_MS) : 0;
        if (left - delay < LEAST_MS) throw error;
        if (asked) continue;
        if (delay > 0) {
          this.lookSoon();
          await pause(delay);
        } else if (error.reply !== 'MOVED' || ++redirects > MAX_REDIRECTS) throw error;
      }
    }
  }

  write(verb: string, name: string, args: Arg[], silentMs: number, until?: number): Promise<any> {
    return this.send(verb, name, args, silentMs, until);
  }

  /** Not possible: a slot may be moving to another node. */
  transact(): null {
    return null;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    const nodes = [...this.nodes.values()];
    this.nodes.clear();
    this.wake();
    await Promise.all(nodes.map(({ link }) => link.close()));
  }

  // --------------------------------------------------------------------------------------------- for links of queues

  /** The master of a slot. If it is not known, any node: that node redirects the call. */
  addressOf(slot: number): Address {
    const nodes = this.slots.nodes();
    return this.slots.owner(slot) ?? anyOf(nodes.length > 0 ? nodes : this.plan.seeds);
  }

  /** Called when a node refused a call. A `MOVED` in its reply is applied at once. */
  learn(message: string, asked: Address): void {
    const redirection = readRedirection(message, asked);
    if (redirection?.kind === 'MOVED') this.move(redirection.slot, this.plan.reach(redirection.to));
    this.lookSoon();
  }

  /** Reads the slots soon, unless that is already planned. */
  lookSoon(): void {
    if (this.closed || this.looking || this.timer || !this.opened) return;
    this.timer = setTimeout(() => void this.look(), Math.min(retryDelay(this.looks), LOOK_MS)).unref();
  }

  // ------------------------------------------------------------------------------------------------ where a call goes

  private async nodeFor(verb: string, slot: number | null, deadline: number): Promise<Node> {
    this.open();
    for (;;) {
      if (this.closed) throw new NotRunningError(verb);
      const isLate = performance.now() >= deadline;
      const owner = slot === null ? this.anyMaster(isLate) : this.slots.owner(slot);
      if (owner) return this.nodeAt(owner);
      if (isLate) throw this.unreachable(verb);
      this.lookSoon();
      await this.change(deadline);
    }
  }

  private anyMaster(isLate: boolean): Address | undefined {
    const masters = this.slots.masters();
    const up = this.reachable();
    // An unreachable master is returned too, because its connection reports the reason.
    if (isLate) return up[0] ?? masters[0];
    const refusing = masters.find((master) => this.nodes.get(nameOf(master))?.link.isRefused);
    return refusing ?? (up.length === masters.length ? up[0] : undefined);
  }

  private reachable(): Address[] {
    return this.slots.masters().filter((master) => this.nodes.get(nameOf(master))?.link.isUp);
  }

  /** The node that an `ASK` names. Null for other replies; then the call is sent again if the slot has moved. */
  private redirected({ address }: Node, error: RedisRefusedError): Node | null {
    const redirection = readRedirection((error.cause as Error).message, address);
    if (!redirection) return null;
    const to = this.plan.reach(redirection.to);
    if (redirection.kind === 'ASK') {
      const node = this.nodeAt(to);
      node.askedAt = performance.now();
      return node;
    }
    this.move(redirection.slot, to);
    this.lookSoon();
    return null;
  }

  private move(slot: number, to: Address): void {
    this.slots.assign(slot, to);
    this.nodeAt(to);
    this.wake();
  }

  private nodeAt(address: Address): Node {
    const name = nameOf(address);
    const known = this.nodes.get(name);
    if (known) return known;
    const make = () => this.plan.makeNode(address, this.role, true);
    const tell = (event: LinkEvent) => this.heard(event);
    const { role, greet, watchMs, internal } = this;
    const link = new Link(role, make, tell, greet, undefined, watchMs, internal);
    const node = { address, link };
    this.nodes.set(name, node);
    if (this.closed) void link.close();
    else link.open();
    return node;
  }

  private heard(event: LinkEvent): void {
    if (this.closed) return;
    this.tell(event);
    if (event.state === 'down') this.lookSoon();
    this.wake();
  }

  // ------------------------------------------------------------------------------------------------------- the slots

  private async look(): Promise<void> {
    this.timer = undefined;
    if (this.closed || this.looking) return;
    this.looking = true;
    try {
      this.apply(await this.ask());
      this.lastError = undefined;
    } catch (error) {
      this.lastError = error as Error;
      if (!this.closed) this.tell({ role: this.role, state: 'down', error: this.lastError });
    }
    this.looking = false;
    if (this.closed) return;
    this.wake();
    this.looks = this.isUp ? 0 : this.looks + 1;
    if (this.looks > 0) this.lookSoon();
  }

  /** Asks one reachable master first, then all known nodes at once. */
  private async ask(): Promise<SlotMap> {
    const up = this.reachable();
    if (up.length > 0) {
      try {
        return await this.askOver(this.nodeAt(anyOf(up)));
      } catch {
        // Other nodes may answer.
      }
    }
    const others = [...this.slots.nodes(), ...this.plan.seeds];
    const unique = [...new Map(others.map((address) => [nameOf(address), address])).values()];
    try {
      return await Promise.any(unique.map((address) => this.askOnce(address)));
    } catch (error) {
      throw error instanceof AggregateError ? error.errors.at(-1) : error;
    }
  }

  /** Asks over a new connection: the node may be a replica, or may have left the cluster. */
  private async askOnce(address: Address): Promise<SlotMap> {
    const make = () => this.plan.makeNode(address, this.role, true);
    const unheard = () => undefined;
    const link = new Link(this.role, make, unheard, undefined, undefined, undefined, this.internal);
    try {
      return await this.askOver({ address, link });
    } finally {
      void link.close();
    }
  }

  private async askOver({ address, link }: Node): Promise<SlotMap> {
    const ranges = (await link.send('findSlots', 'cluster', ['SLOTS'], ASK_MS)) as SlotRange[];
    if (ranges.length === 0) {
      throw new RedisUnavailableError(
        'findSlots',
        'no',
        `node ${nameOf(address)} reports that no slot is assigned`,
      );
    }
    return new SlotMap(ranges, address, (one) => this.plan.reach(one));
  }

  private apply(slots: SlotMap): void {
    this.slots = slots;
    const masters = new Set(slots.masters().map(nameOf));
    const isAsked = ({ askedAt = -Infinity }: Node) => performance.now() - askedAt < ASKED_MS;
    for (const [name, node] of this.nodes) {
      if (masters.has(name) || isAsked(node)) continue;
      this.nodes.delete(name);
      void node.link.close();
    }
    for (const master of slots.masters()) this.nodeAt(master);
  }

  // --------------------------------------------------------------------------------------------------------- waiting

  private change(deadline: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.waiters.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.max(0, deadline - performance.now()));
      this.waiters.add(done);
    });
  }

  private wake(): void {
    for (const waiter of this.waiters) waiter();
  }

  private unreachable(verb: string): Error {
    const { lastError } = this;
    if (lastError instanceof RedisRefusedError) {
      return new RedisRefusedError(verb, lastError.reply, (lastError.cause as Error).message, {
        cause: lastError,
      });
    }
    const why = `no node of the cluster could be reached in time${lastError ? ` (${lastError.message})` : ''}`;
    return new RedisUnavailableError(verb, 'no', why, { cause: lastError });
  }
}

function anyOf(addresses: readonly Address[]): Address {
  return addresses[Math.floor(Math.random() * addresses.length)]!;
}
