import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { deathOf, jobPlan, kindOf, ownId, type Kind } from '../load.js';
import { ACCEPTED, DEAD, DUPLICATE, INTENDED, Nonces, REFUSED, STARTED } from './nonces.js';
import { readLedger } from './reader.js';

/** The library's default: a job that loses more workers than this is dead. */
const MAX_STALLS = 5;

/** A process according to its ledger. */
export interface ProcessHistory {
  readonly file: string;
  /** Names of its workers. */
  readonly names: string[];
  /** Runs that began and whose outcome is unknown. */
  readonly open: Map<number, { n: number; ended: boolean }>;
  /** When it first asked for jobs. */
  startedAt: number | undefined;
  /** When and why it ended; undefined while it runs. */
  endedAt: number | undefined;
  cause: string;
}

/** Jobs that were taken back from a worker. */
interface Recovery {
  readonly name: string;
  readonly jobs: number;
  readonly at: number;
}

/** A fault that the nemesis caused, from its ledger. */
interface Deed {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly met: string;
}

interface LedgerTerms {
  readonly dir: string;
  readonly seed: number;
  readonly leaseMs: number;
  readonly stride: number;
}

/** All ledgers of a run together. */
export class History {
  readonly nonces = new Nonces();
  readonly processes = new Map<string, ProcessHistory>();
  readonly recoveries: Recovery[] = [];
  readonly deeds: Deed[] = [];
  readonly deaths = new Map<string, number>();
  readonly unhandled: string[] = [];
  readonly counts = {
    started: 0,
    ended: 0,
    refused: 0,
    stalled: 0,
    completed: 0,
    foreign: 0,
    wrongEnds: 0,
    unlucky: 0,
  };
  /** Calls of several jobs without an answer: `n` is their number. */
  readonly unheard = new Map<number, number>();
  /** How often a job was taken back from a worker, by the events of the store. */
  readonly stalls = new Map<number, number>();
  /** Events that the watcher missed. */
  missed = 0;
  private readonly kinds = new Map<number, Kind>();
  private readonly ids = new Map<string, number>();

  constructor(readonly terms: LedgerTerms) {
    // Events of the store name ids; the ledgers of workers map them to nonces.
    const files = readdirSync(terms.dir).filter((name) =>
      /^(worker|producer|watcher|nemesis)-\d+\.\d+$/.test(name),
    );
    const rank = (name: string) => ['producer', 'worker', 'watcher', 'nemesis'].indexOf(name.split('-')[0]!);
    for (const file of files.toSorted((a, b) => rank(a) - rank(b))) this.read(file);
  }

  /** The nonce of an id; undefined if no process of this run added it. */
  nonceOf(id: string): number | undefined {
    const own = /^j(\d+)$/.exec(id);
    return own && ownId(Number(own[1])) === id ? Number(own[1]) : this.ids.get(id);
  }

  kindOf(n: number): Kind {
    return this.kinds.get(n) ?? jobPlan(n, this.terms.seed, this.terms.leaseMs).kind;
  }

  /** When each of these nonces ran again, at or after the given time. */
  restarts(after: ReadonlyMap<number, number>): Map<number, number> {
    const again = new Map<number, number>();
    for (const file of this.processes.keys()) {
      readLedger(join(this.terms.dir, file), ([letter, first, , at]) => {
        if (letter !== 'S') return;
        const n = Number(first);
        const from = after.get(n);
        const t = Number(at);
        if (from !== undefined && t >= from && t < (again.get(n) ?? Infinity)) again.set(n, t);
      });
    }
    return again;
  }

  private read(file: string): void {
    const history: ProcessHistory = {
      file,
      names: [],
      open: new Map(),
      startedAt: undefined,
      endedAt: undefined,
      cause: '',
    };
    if (file.startsWith('worker')) this.processes.set(file, history);
    readLedger(join(this.terms.dir, file), (words) => this.see(words, history));
  }

  private see(words: readonly string[], history: ProcessHistory): void {
    const [letter, first] = words as [string, string];
    switch (letter) {
      case 'I':
      case 'A':
      case 'R':
        return this.seeAdds(letter, Number(first), Number(words[2]), words[3]);
      case 'S':
      case 'E':
      case 'C':
      case 'T':
      case 'X':
        return this.seeRun(letter, Number(first), Number(words[2]), words[4], history);
      case 'Q':
        return this.nonces.mark(Number(first), DUPLICATE);
      case 'c':
      case 'f':
      case 's':
        return this.seeEvent(letter, first, words[2] ?? '');
      case 'g':
        this.missed += Math.abs(Number(first));
        return;
      case 'W':
        history.names.push(first);
        history.startedAt ??= Number(words[2]);
        return;
      case 'V':
        this.recoveries.push({ name: first, jobs: Number(words[2]), at: Number(words[3]) });
        return;
      case 'K':
        this.deeds.push({ kind: first, from: Number(words[2]), to: Number(words[3]), met: words[4]! });
        return;
      case 'D': {
        const ended = this.processes.get(first);
        if (ended) Object.assign(ended, { endedAt: Number(words[2]), cause: words[3]! });
        return;
      }
      case 'U':
        this.unhandled.push(`${history.file}: ${words.slice(1).join(' ')}`);
        return;
      default:
        // L: the counterpart of V.
        return;
    }
  }

  private seeAdds(letter: 'I' | 'A' | 'R', first: number, count: number, kind: string | undefined): void {
    const flag = { I: INTENDED, A: ACCEPTED, R: REFUSED }[letter];
    for (let i = 0; i < count; i++) this.nonces.mark(first + i * this.terms.stride, flag);
    if (kind !== undefined) this.kinds.set(first, kindOf(kind));
    if (letter === 'I') this.unheard.set(first, count);
    else this.unheard.delete(first);
  }

  private seeRun(
    letter: 'S' | 'E' | 'C' | 'T' | 'X',
    n: number,
    run: number,
    id: string | undefined,
    { open }: ProcessHistory,
  ): void {
    const { nonces, counts } = this;
    switch (letter) {
      case 'S':
        counts.started += 1;
        nonces.mark(n, STARTED);
        open.set(run, { n, ended: false });
        if (id !== undefined) this.ids.set(id, n);
        return;
      case 'E':
        counts.ended += 1;
        nonces.count('ends', n);
        open.set(run, { n, ended: true });
        return;
      case 'C':
        nonces.count('accepted', n);
        break;
      case 'X':
        counts.refused += 1;
    }
    open.delete(run);
  }

  private seeEvent(letter: 'c' | 'f' | 's', id: string, reason: string): void {
    const n = this.nonceOf(id);
    if (n === undefined) this.counts.foreign += 1;
    else if (letter === 's') {
      this.counts.stalled += 1;
      this.stalls.set(n, (this.stalls.get(n) ?? 0) + 1);
    } else {
      const must = deathOf(this.kindOf(n));
      this.nonces.count('told', n);
      const end = letter === 'f' ? reason : undefined;
      // With many kills a harmless job may lose its sixth worker by chance, and is then rightly dead.
      if (end === 'stalled' && must !== end && (this.stalls.get(n) ?? 0) > MAX_STALLS)
        this.counts.unlucky += 1;
      else if (must !== end) this.counts.wrongEnds += 1;
      if (letter === 'c') this.counts.completed += 1;
      else {
        this.nonces.mark(n, DEAD);
        this.deaths.set(reason, (this.deaths.get(reason) ?? 0) + 1);
      }
    }
  }
}
