import assert from 'node:assert/strict';
import { limitOf, type Place } from './invariants.js';
import type { State } from './state.js';

/** The group of each job, by its id, so that a job that reuses an id has the same group. */
export function groupOf(id: string): string | undefined {
  if (['a', 'b', '0mwtqbbga5wm6p6000A'].includes(id)) return 'g1';
  return id === 'c' ? 'g2' : undefined;
}

const GROUPS = ['g1', 'g2'];

/**
 * Checks that claims keep the limits, only from where jobs are and when they were claimed. It does not use the counts
 * of the scripts.
 */
export class Pace {
  /** Claimed jobs that have not ended: in strict order they keep others from starting. */
  private readonly begun = new Set<string>();
  private readonly starts: { readonly group: string; readonly at: number }[] = [];
  private now = 0;

  follow(
    script: string,
    now: number,
    state: State,
    before: ReadonlyMap<string, Place>,
    after: ReadonlyMap<string, Place>,
  ): void {
    // If the clock was set back, the window of a rate is not what it was.
    if (now < this.now) this.starts.length = 0;
    this.now = now;
    const started: string[] = [];
    for (const id of new Set([...before.keys(), ...after.keys()])) {
      const [from, to] = [before.get(id)?.state, after.get(id)?.state];
      if (to === 'active' && from !== 'active') started.push(id);
      const isReplaced = script === 'enqueue' && from !== undefined && from !== to;
      if (!to || ['completed', 'cancelled'].includes(to) || isReplaced || this.isFreedByDeath(state, id, to))
        this.begun.delete(id);
    }
    // A job in strict order keeps its place while it waits for a retry, also if the limit was lowered.
    const hasPlace = (id: string) =>
      this.begun.has(id) && limitOf(state, `g:${groupOf(id)}`).order === 'strict';
    const isQueueUsed = started.some((id) => !hasPlace(id));
    for (const id of started) this.begun.add(id);
    if (started.length > 0) this.check(started, isQueueUsed, state, after);
  }

  private isFreedByDeath(state: State, id: string, to: string): boolean {
    const group = groupOf(id);
    return to === 'dead' && (!group || limitOf(state, `g:${group}`).onDead !== 'block');
  }

  private check(
    started: readonly string[],
    isQueueUsed: boolean,
    state: State,
    after: ReadonlyMap<string, Place>,
  ): void {
    const active = [...after].flatMap(([id, place]) => (place.state === 'active' ? [id] : []));
    const queue = limitOf(state, 'q').concurrency || Infinity;
    assert(!isQueueUsed || active.length <= queue, `${active.length} jobs run, and ${queue} may`);
    for (const group of GROUPS) {
      const isOfGroup = (id: string) => groupOf(id) === group;
      const its = started.filter(isOfGroup);
      if (its.length === 0) continue;
      const rule = limitOf(state, `g:${group}`);
      assert(!rule.paused, `a job of ${group} started, which is paused`);
      const most = rule.concurrency || Infinity;
      assert(active.filter(isOfGroup).length <= most, `more jobs of ${group} run than may`);
      if (rule.order === 'strict')
        assert.deepEqual(
          [...this.begun].filter(isOfGroup),
          its,
          `jobs of ${group} are not one after another`,
        );
      this.starts.push(...its.map(() => ({ group, at: this.now })));
      if (!rule.rate) continue;
      const { max, per } = rule.rate;
      const recent = this.starts.filter((one) => one.group === group && one.at > this.now - per);
      assert(
        recent.length <= max,
        `${recent.length} jobs of ${group} started within ${per} ms, and ${max} may`,
      );
    }
  }
}
