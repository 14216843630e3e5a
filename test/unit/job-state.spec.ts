import { EVENT_TYPES } from '#lib/contract/engine.js';
import { JOB_MOVES, type JobState } from '#lib/job/job-state.js';
import { describe, expect, it } from 'vitest';

const STATES: JobState[] = ['waiting', 'delayed', 'active', 'completed', 'dead'];

const reach = (from: JobState | null, forbidden?: JobState): Set<JobState | null> => {
  const reached = new Set<JobState | null>([from]);
  for (const state of reached) {
    for (const move of JOB_MOVES) {
      if (move.from === state && state !== forbidden && (state !== null || reached.size === 1))
        reached.add(move.to);
    }
  }
  return reached;
};

describe('JOB_MOVES', () => {
  it('have a path from a new job to every state, and from every state to an end', () => {
    expect([...reach(null)]).toEqual(expect.arrayContaining(STATES));
    for (const state of STATES) expect(reach(state)).toContain(null);
  });

  it('lets only active jobs complete, and reaches active only from waiting', () => {
    expect(JOB_MOVES.filter(({ event }) => event === 'completed').map(({ from }) => from)).toEqual([
      'active',
      'active',
    ]);
    expect(JOB_MOVES.filter(({ to }) => to === 'active').map(({ from }) => from)).toEqual(['waiting']);
    expect(reach('completed')).toEqual(new Set(['completed', null]));
  });

  it('never takes an active job away from its worker by a person', () => {
    expect(JOB_MOVES.filter(({ from, event }) => from === 'active' && event === 'removed')).toEqual([]);
  });

  it('uses every event that is about a move, and only those that exist', () => {
    const used = new Set(JOB_MOVES.flatMap(({ event }) => event ?? []));
    const others = ['progress', 'paused', 'resumed', 'breakerOpened', 'breakerClosed', 'published'];
    const advice = 'a type is in JOB_MOVES of lib/job/job-state.ts, or among the others in this test';
    expect([...used].toSorted(), advice).toEqual(
      EVENT_TYPES.filter((type) => !others.includes(type)).toSorted(),
    );
  });

  it('lists each move once', () => {
    const said = JOB_MOVES.map(({ from, event, to }) => `${from} ${event} ${to}`);
    expect(new Set(said).size).toBe(said.length);
  });
});
