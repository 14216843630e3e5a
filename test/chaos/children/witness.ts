import type { Job } from '#lib/index.js';
import type { ExchangeAnswer, ExchangeCall, QueueEngine } from '#lib/contract/engine.js';
import type { LedgerWriter } from '../ledger/writer.js';
import { ownId, type Payload } from '../load.js';
import { QUEUE } from '../plan.js';
import { die } from './child.js';

interface Seen {
  readonly n: number;
  readonly run: number;
}

/**
 * Records what a worker does and what it is answered. It sits between the library and its engine, the only place where
 * a worker learns which of its settlements were accepted. It changes nothing.
 */
export class Witness {
  /** Ends that were accepted. */
  accepted = 0;
  running = 0;
  /** Sends the next settlement without receiving its answer. */
  dieInSettling = false;
  /** By the id of the job. If two runs of one job are in one process, the earlier one has lost its lease. */
  private readonly seen = new Map<string, Seen>();
  private runs = 0;
  private name = '';

  constructor(private readonly ledger: LedgerWriter) {}

  /** The first line of a handler. */
  begins(job: Job<Payload>, n: number): Seen {
    const seen = { n, run: ++this.runs };
    this.seen.set(job.id, seen);
    this.running += 1;
    const id = job.id === ownId(n) ? '' : ` ${job.id}`;
    this.ledger.write(`S ${n} ${seen.run} ${this.ledger.now()}${id}\n`);
    return seen;
  }

  /** The last line of a handler. */
  ends({ n, run }: Seen): void {
    this.ledger.write(`E ${n} ${run}\n`);
  }

  watch(engine: QueueEngine): void {
    const exchange = engine.exchange.bind(engine);
    const recover = engine.recover.bind(engine);
    engine.exchange = async (queue, call) => {
      if (queue !== QUEUE) return exchange(queue, call);
      if (call.worker !== this.name) this.named(call.worker);
      const answer = exchange(queue, call);
      // The kernel has the call and delivers it; nobody receives the answer.
      if (this.dieInSettling && call.settled.length > 0) die();
      this.settled(call, await answer);
      return answer;
    };
    engine.recover = async (queue, call) => {
      const answer = await recover(queue, call);
      if (answer.kind === 'recovered' && queue === QUEUE) {
        const count = answer.waiting.length + answer.suspects.length + answer.dead.length;
        this.ledger.write(`V ${call.worker} ${count} ${this.ledger.now()}\n`);
      }
      return answer;
    };
  }

  private settled(call: ExchangeCall, answer: ExchangeAnswer): void {
    const refused = answer.kind === 'exchanged' ? new Set(answer.lost) : null;
    let lines = '';
    for (const run of call.settled) {
      const seen = this.seen.get(run.id);
      // Jobs that were claimed and given back before they started.
      if (!seen) continue;
      this.seen.delete(run.id);
      this.running -= 1;
      const ended = run.outcome.kind === 'completed' || run.outcome.kind === 'dead';
      const held = refused !== null && !refused.has(run.id);
      if (held && ended) this.accepted += 1;
      lines += `${held ? (ended ? 'C' : 'T') : 'X'} ${seen.n} ${seen.run}\n`;
    }
    this.ledger.write(lines);
    if (answer.kind === 'unknown-worker') this.lost(call.worker);
  }

  private named(name: string): void {
    this.name = name;
    this.ledger.write(`W ${name} ${this.ledger.now()}\n`);
  }

  private lost(name: string): void {
    this.ledger.write(`L ${name} ${this.ledger.now()}\n`);
  }
}
