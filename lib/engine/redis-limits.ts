import type {
  LimitCharge,
  LimitField,
  LimitsOverview,
  LimitRule,
  LimitState,
  LimitVerbs,
  RunReport,
  RunReportAnswer,
  ShareAnswer,
  ShareCall,
} from '../contract/limit-verbs.js';
import { placeOf, SHARED } from '../contract/limit-verbs.js';
import type { EngineSettings } from './wire/clients.js';
import type { RedisStore } from './redis-store.js';
import { type Reported, charge, limits, report, setLimits, share, wakeLines } from './scripts/limits.js';

/** Limits of queues, names and groups on Redis. */
export class RedisLimits implements LimitVerbs {
  constructor(
    private readonly store: RedisStore,
    private readonly settings: Pick<EngineSettings, 'limitsOf'>,
  ) {}

  async set(queue: string, field: LimitField, part: 'code' | 'live', rule: LimitRule | null): Promise<void> {
    const args = { field, part, rule: rule ? JSON.stringify(rule) : '' };
    await this.store.withWorkers(placeOf(queue, field), ({ workers, active }, keys) =>
      this.store.run(setLimits, keys.fixed, { ...args, workers }, {}, active),
    );
    if (field === 'g') await this.wakeLines(queue);
  }

  /** Marks all lines in small steps, so that the next claims examine them again. */
  async wakeLines(queue: string): Promise<void> {
    const { fixed } = this.store.keysOf(queue);
    for (let cursor = '0', isFirst = true; isFirst || cursor !== '0'; isFirst = false)
      cursor = await this.store.run(wakeLines, fixed, { cursor });
  }

  async charge(queue: string, changes: readonly LimitCharge[]): Promise<void> {
    const own = changes.filter(({ field }) => placeOf(queue, field) === queue);
    const shared = changes.filter((change) => !own.includes(change));
    await Promise.all([this.chargeAt(queue, own), this.chargeAt(SHARED, shared)]);
  }

  private async chargeAt(place: string, changes: readonly LimitCharge[]): Promise<void> {
    if (changes.length === 0) return;
    const list = changes.flatMap(({ field, holdMs, count, countedAt, probesAgain = false }) => [
      field,
      holdMs,
      count,
      countedAt ?? -1,
      Number(probesAgain),
    ]);
    await this.store.run(charge, this.store.keysOf(place).fixed, {}, { changes: list });
  }

  async report(queue: string, reports: readonly RunReport[]): Promise<readonly RunReportAnswer[]> {
    const own = reports.filter(({ field }) => placeOf(queue, field) === queue);
    const shared = reports.filter((one) => !own.includes(one));
    const [ofOwn, ofShared] = await Promise.all([this.reportAt(queue, own), this.reportAt(SHARED, shared)]);
    await Promise.all(ofShared.map((one, i) => this.tellUsers(queue, shared[i]!.field, one)));
    const [nextOwn, nextShared] = [ofOwn.values(), ofShared.values()];
    return reports.map((one) => (own.includes(one) ? nextOwn : nextShared).next().value!.answer);
  }

  private async reportAt(place: string, reports: readonly RunReport[]): Promise<Reported[]> {
    if (reports.length === 0) return [];
    const list = reports.flatMap(({ field, completed, failed, retries, firsts, closes = false }) => [
      field,
      completed,
      failed,
      retries,
      firsts,
      Number(closes),
    ]);
    return this.runReport(place, { reports: list, sharedEvents: [] });
  }

  /** Writes the event of a shared breaker to each queue that uses the limit. If that fails, only the event is missing. */
  private async tellUsers(queue: string, field: LimitField, { answer, users, openForMs }: Reported) {
    if (answer.breaker !== 'opened' && answer.breaker !== 'closed') return;
    const sharedEvents =
      answer.breaker === 'opened' ? ['breakerOpened', field, openForMs] : ['breakerClosed', field, 0];
    await Promise.allSettled(
      [...new Set([queue, ...users])].map((one) => this.runReport(one, { reports: [], sharedEvents })),
    );
  }

  private runReport(
    place: string,
    lists: { reports: (string | number)[]; sharedEvents: (string | number)[] },
  ) {
    const { maxEvents } = this.settings.limitsOf(place);
    return this.store.run(report, this.store.keysOf(place).fixed, { maxEvents }, lists);
  }

  async share(queue: string, { limits: names, kept, unused, ...call }: ShareCall): Promise<ShareAnswer> {
    const args = { ...call, queue, keep: kept ?? -1, unused: unused ? 1 : 0 };
    return this.store.run(share, this.store.keysOf(SHARED).fixed, args, { limits: names });
  }

  async shared(): Promise<readonly LimitState[]> {
    const { found } = await this.look(SHARED, { kind: 'shared' });
    return found;
  }

  async list(queue: string): Promise<readonly LimitState[]> {
    return (await this.overview(queue)).limits;
  }

  async overview(queue: string): Promise<LimitsOverview> {
    const first = await this.look(queue, { kind: 'all' });
    const { stopped } = first.groups;
    let { ready, resting } = first.groups;
    const limits = [...first.found];
    for (let { cursor } = first; cursor !== '0';) {
      // oxlint-disable-next-line no-await-in-loop -- each page has the cursor of the next
      const page = await this.look(queue, { kind: 'all', cursor });
      // A scan may return a field twice.
      for (const one of page.found) if (!limits.some(({ field }) => field === one.field)) limits.push(one);
      ready += page.groups.ready;
      resting += page.groups.resting;
      cursor = page.cursor;
    }
    return { limits, groups: { ready, resting, stopped } };
  }

  async group(queue: string, group: string): Promise<LimitState> {
    const { found } = await this.look(queue, { kind: 'group', field: `g:${group}` });
    return found[0]!;
  }

  groups(queue: string, cursor: string, limit: number) {
    return this.pageOf(queue, { kind: 'groups', cursor, limit });
  }

  ruledGroups(queue: string, cursor: string, limit: number) {
    return this.pageOf(queue, { kind: 'ruled', cursor, limit });
  }

  stoppedGroups(queue: string, cursor: string, limit: number) {
    return this.pageOf(queue, { kind: 'stopped', cursor, limit });
  }

  private async pageOf(queue: string, page: { kind: string; cursor: string; limit: number }) {
    const { found, cursor: next } = await this.look(queue, page);
    return { groups: found, next: next === '0' ? null : next };
  }

  private look(queue: string, some: { kind: string; field?: string; cursor?: string; limit?: number }) {
    const args = { field: '', cursor: '0', limit: 0, ...some };
    return this.store.run(limits, this.store.keysOf(queue).fixed, args);
  }
}
