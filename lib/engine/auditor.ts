import type { AuditReport, Repair, RepairReport, Violation } from '../job/audit-report.js';
import { AUDITED, AuditFacts, shownId, type AuditedKey } from '../contract/audit-facts.js';
import type { EngineSettings } from './wire/clients.js';
import type { RecoverAnswer } from '../contract/engine.js';
import { inSteps } from '../contract/retry.js';
import { RULES } from '../job/rules.js';
import { isLetteredJobs, LETTERED_JOBS, typeOfKey, type LetteredJobs, type QueueKeys } from './keys.js';
import { count } from './codec/replies.js';
import type { RedisStore } from './redis-store.js';
import { type RawFacts, audit, auditPage, repair } from './scripts/audit.js';

/**
 * One script checks the whole queue if it has at most this many bodies and places (about half as many jobs). A larger queue is
 * read in pages.
 */
const AT_ONCE = 20_000;
const PAGE = 1_000;
/** About how many bytes of bodies and records one script reads. It takes longer to read 1 MB than to read a page of ids. */
const PAGE_BYTES = 524_288;
/** Maximum number of ids that one script checks or repairs. */
const BATCH = 200;
/**
 * Finding an id in a line takes time in proportion to its length. One script may pass this many entries, which takes about 10 ms.
 */
const PASSED = 1_000_000;
/** How long a completed job is kept if its place was lost. Its own retention is not known any more. */
const KEEP_MS = 86_400_000;

interface AuditorSettings extends Pick<EngineSettings, 'limitsOf'> {
  /** Recovers the jobs of a worker whose lease is over. */
  readonly recover: (queue: string, worker: string) => Promise<RecoverAnswer>;
}

/** Finds and repairs damage that only arises if keys were lost or another program has written to them. */
export class Auditor {
  constructor(
    private readonly store: RedisStore,
    private readonly settings: AuditorSettings,
  ) {}

  async audit(queue: string): Promise<AuditReport> {
    const found = await this.look(queue, 'all');
    if (found !== 'large') return found.facts.report(found.violations);
    const facts = await this.readPages(queue);
    // Jobs move while the pages are read. So every id that looks wrong is checked again, all its places in one script.
    const suspected = subjects(facts.violations(0, Infinity)).ids;
    const confirmed: Violation[] = [];
    let workers: readonly Violation[] = [];
    for (const batch of await this.batches(queue, suspected)) {
      const again = await this.look(queue, batch);
      if (again === 'large') continue;
      const { others } = subjects(again.violations);
      confirmed.push(...again.violations.filter(({ id }) => id !== null));
      workers = others;
    }
    return facts.report([...confirmed, ...workers]);
  }

  async repair(queue: string): Promise<RepairReport> {
    const { violations, checked } = await this.audit(queue);
    const repairs: Repair[] = [];
    if (violations.length === 0) return { repairs, checked };
    const { ids } = subjects(violations);
    // Repair the newest jobs first: each batch goes to the head of the line, so the oldest end up first.
    const batches = await this.batches(queue, ids.toSorted().toReversed());
    return inSteps(async (changed) => {
      for (const batch of batches) {
        repairs.push(...(await this.repairBatch(queue, batch.toReversed())));
        changed(repairs.length);
      }
      return { repairs, checked };
    });
  }

  private async look(
    queue: string,
    asked: readonly string[] | 'all',
  ): Promise<'large' | { facts: AuditFacts; violations: Violation[] }> {
    return this.withHolders(queue, async (workers, keys, more) => {
      const raw = await this.store.run(
        audit,
        keys.fixed,
        { workers: workers.join('\n'), all: asked === 'all' ? 1 : 0, max: AT_ONCE },
        { ids: asked === 'all' ? [] : asked },
        more,
      );
      if (typeof raw === 'string') return raw;
      const facts = readFacts(raw, workers);
      await this.countCancelled(keys, facts);
      return { facts, violations: facts.violations(raw.now, this.settings.limitsOf(queue).leaseMs) };
    });
  }

  private async readPages(queue: string): Promise<AuditFacts> {
    const facts = new AuditFacts();
    const keys = this.store.keysOf(queue);
    for (const kind of [...LETTERED_JOBS, ...AUDITED]) {
      const key = isLetteredJobs(kind) ? 'jobs' : kind;
      for await (const { ids, unreadable } of this.pages(keys, kind)) {
        facts.see(key, ids);
        for (const id of unreadable) facts.seeUnreadable(key, id);
      }
    }
    for (const worker of await this.store.holders(queue))
      for await (const { ids } of this.pages(keys, 'active', [keys.active(worker)]))
        facts.seeHeld(worker, ids);
    await this.countCancelled(keys, facts);
    return facts;
  }

  private async countCancelled({ fixed }: QueueKeys, facts: AuditFacts): Promise<void> {
    const args = [fixed.completed, RULES.cancelledFrom, '+inf'];
    facts.cancelled = (await this.store.command('audit', 'zcount', args)) as number;
  }

  private async *pages(
    keys: QueueKeys,
    kind: AuditedKey | LetteredJobs | 'active',
    more: readonly string[] = [],
  ): AsyncGenerator<{ readonly ids: readonly string[]; readonly unreadable: readonly string[] }> {
    let cursor = '0';
    do {
      const args = { kind, type: typeOfKey(kind), cursor, count: PAGE, bytes: PAGE_BYTES };
      const page = await this.store.run(auditPage, keys.fixed, args, {}, more);
      yield page;
      cursor = page.cursor;
    } while (cursor !== '0');
  }

  private async repairBatch(queue: string, ids: readonly string[]): Promise<Repair[]> {
    const { leaseMs, maxEvents, deadMax, deadAgeMs } = this.settings.limitsOf(queue);
    const { acts, orphans } = await this.withHolders(queue, (workers, keys, more) =>
      this.store.run(
        repair,
        { ...keys.fixed, stats: keys.stats(this.store.today()) },
        {
          workers: workers.join('\n'),
          leaseMs,
          beatMs: leaseMs / 4,
          keepMs: KEEP_MS,
          maxEvents,
          deadMax,
          deadAge: deadAgeMs,
        },
        { ids },
        more,
      ),
    );
    const repairs = acts.map(({ act, name, place }) => describe(act, name, place));
    return inSteps(async (changed) => {
      changed(repairs.length);
      for (const worker of orphans) {
        repairs.push(...(await this.recover(queue, worker)));
        changed(repairs.length);
      }
      return repairs;
    });
  }

  private async recover(queue: string, worker: string): Promise<Repair[]> {
    const ids: string[] = [];
    for (;;) {
      const answer = await this.settings.recover(queue, worker);
      if (answer.kind !== 'recovered') break;
      ids.push(...answer.waiting, ...answer.suspects, ...answer.dead);
      if (!answer.more) break;
    }
    return ids.map((id) => ({
      did: 'recovered',
      id,
      worker,
      text: `job ${shownId(id)} was taken back from worker ${JSON.stringify(worker)}, which is not known; a stall is counted`,
    }));
  }

  /** Calls a script with all workers that may hold jobs, and repeats the call if a new worker appeared in between. */
  private async withHolders<T>(
    queue: string,
    ask: (workers: readonly string[], keys: QueueKeys, more: readonly string[]) => Promise<T | 'again'>,
  ): Promise<T> {
    const keys = this.store.keysOf(queue);
    // Workers with a lease come and go. Sets of workers without a lease stay until they are repaired.
    const held = await this.store.holders(queue);
    return this.store.withWorkers(queue, ({ names: leased }) => {
      const workers = [...new Set([...leased, ...held])];
      return ask(
        workers,
        keys,
        workers.flatMap((worker) => [keys.active(worker), keys.worker(worker)]),
      );
    });
  }

  private async batches(queue: string, ids: readonly string[]): Promise<string[][]> {
    const { wait } = this.store.keysOf(queue).fixed;
    const length = (await this.store.command('audit', 'llen', [wait])) as number;
    const size = Math.max(1, Math.min(BATCH, Math.floor(PASSED / (length + 1))));
    // At least one batch, even without ids: the script also checks the workers.
    const batches: string[][] = [ids.slice(0, size)];
    for (let at = size; at < ids.length; at += size) batches.push(ids.slice(at, at + size));
    return batches;
  }
}

function readFacts(raw: RawFacts, workers: readonly string[]): AuditFacts {
  const { holders, ids, unreadable } = raw;
  const facts = new AuditFacts();
  AUDITED.forEach((key, i) => facts.see(key, ids[i]!));
  for (let i = 0; i < unreadable.length; i += 2)
    facts.seeUnreadable(unreadable[i] as AuditedKey, unreadable[i + 1]!);
  holders.forEach(([lease, known, leaseMs, held, heldIds], i) => {
    facts.seeHeld(workers[i]!, heldIds);
    facts.seeWorker(workers[i]!, {
      leaseAt: lease === '' ? null : Number(lease),
      leaseMs: leaseOf(leaseMs),
      known: known === 1,
      held,
    });
  });
  return facts;
}

/** The same as `lease_of` in `shared/hold.lua`. */
function leaseOf(text: string): number | null {
  const ms = count(text);
  return ms >= RULES.leaseMinMs && ms <= RULES.leaseMaxMs ? ms : null;
}

function subjects(violations: readonly Violation[]): { ids: string[]; others: Violation[] } {
  const ids = new Set<string>();
  const others: Violation[] = [];
  for (const violation of violations) {
    if (violation.id === null) others.push(violation);
    else ids.add(violation.id);
  }
  return { ids: [...ids], others };
}

function describe(did: Repair['did'], name: string, place: string): Repair {
  const quoted = shownId(name);
  if (did === 'leased')
    return { did, id: null, worker: name, text: `worker ${quoted} has a lease of the right length again` };
  const sentences: Partial<Record<Repair['did'], string>> = {
    buried: 'could not run, and is dead as corrupt',
    emptied: `stays ${place}, but its body is lost`,
    'lined-up': 'was in no place, and is waiting again',
    'kept-ended': `was in no place, and is kept as ${place}`,
    'kept-one': `was in more than one place, and is in ${place} only`,
    swept: 'had entries that did not belong to it',
    reset: 'had a number that could not be read; it starts at 0 again',
  };
  return { did, id: name, worker: null, text: `job ${quoted} ${sentences[did]}` };
}
