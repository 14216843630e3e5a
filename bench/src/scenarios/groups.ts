import { consuming } from '../measure/consuming.js';
import type { Scenario } from '../scenario.js';

const CONCURRENCY = 100;
const GROUPS = 10_000;

export const groups: Scenario = consuming(
  {
    name: 'groups',
    title: `consume, no-op handler, concurrency ${CONCURRENCY}, ${GROUPS.toLocaleString('en')} groups of the same size, one job of a group at a time`,
    needs: ['groups'],
  },
  {
    concurrency: CONCURRENCY,
    open: { groups: { of: (n) => `group-${n % GROUPS}`, isOneAtATime: true } },
  },
);
