import type { Figure } from '../trials/report.js';
import { nodeKilled, slotMoved, type ClusterFault } from './cluster-faults.js';
import type { Account } from './history.js';
import type { Finish } from './load.js';
import { sentinelFailover, type Failover } from './sentinel-failover.js';
import { networkSplit } from './split.js';

/** One repetition: its description and its figures. */
export interface Repetition {
  readonly resumedMs: number;
  readonly accounts: Readonly<Record<string, Account>>;
  readonly finish: Finish;
}

export interface FailoverTrial {
  readonly name: string;
  readonly what: string;
  /** Repetitions, unless `--times` says otherwise. */
  readonly times: number;
  readonly run: () => Promise<Repetition>;
  readonly judge: (all: readonly Repetition[]) => Figure[];
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const total = (all: readonly Repetition[], count: (account: Account) => number, ...queues: string[]) =>
  sum(all.flatMap(({ accounts }) => queues.map((queue) => count(accounts[queue]!))));

/** The invariants of every trial. */
function common(all: readonly Repetition[]): Figure[] {
  const names = Object.keys(all[0]!.accounts);
  const none = (what: string, value: number): Figure => ({ what, value, equals: 0 });
  return [
    none(
      'said not to be stored, and run',
      total(all, ({ phantom }) => phantom.length, ...names),
    ),
    none(
      'adds that were never decided',
      total(all, ({ undecided }) => undecided, ...names),
    ),
    none('violations in audits', sum(all.map(({ finish }) => finish.violations.length))),
    none('queues not drained', all.filter(({ finish }) => !finish.isDrained).length),
    none('unhandled rejections', sum(all.map(({ finish }) => finish.unhandled.length))),
  ];
}

function resumed(all: readonly Repetition[], what: string, atMost?: number): Figure {
  const value = Math.max(...all.map(({ resumedMs }) => resumedMs));
  return { what, value, unit: 'ms', ...(atMost !== undefined && { atMost }) };
}

function losses(all: readonly Repetition[]): Figure[] {
  const acknowledged = (queue: string) => total(all, (account) => account.acknowledged, queue);
  const lost = (queue: string) => total(all, (account) => account.lost.length, queue);
  return [
    { what: `lost of ${acknowledged('local')} acknowledged by the primary alone`, value: lost('local') },
    {
      what: `lost of ${acknowledged('replicated')} that a replica confirmed`,
      value: lost('replicated'),
      equals: 0,
    },
  ];
}

/** A queue with groups, keys and limits loses nothing that a replica confirmed, and nothing of it stands still. */
function ofTenants(all: readonly Repetition[]): Figure[] {
  const count = (of: (finish: Finish) => number) => sum(all.map(({ finish }) => of(finish)));
  const confirmed = total(all, ({ acknowledged }) => acknowledged, 'tenants');
  const lost = total(all, (account) => account.lost.length, 'tenants');
  return [
    {
      what: `lost of ${confirmed} with groups, keys and limits that a replica confirmed`,
      value: lost,
      equals: 0,
    },
    {
      what: 'keys in use after their jobs have ended',
      value: count(({ stuckKeys }) => stuckKeys),
      equals: 0,
    },
    {
      what: 'groups and slots that are left',
      value: count(({ stuckGroups }) => stuckGroups.length),
      equals: 0,
    },
  ];
}

const bySentinel = async (failover: Promise<Failover>): Promise<Repetition> => {
  const { resumedMs, local, replicated, tenants, finish } = await failover;
  return { resumedMs, accounts: { local, replicated, tenants }, finish };
};

const onCluster = async (fault: Promise<ClusterFault>): Promise<Repetition> => {
  const { resumedMs, local, replicated, elsewhere, finish } = await fault;
  return { resumedMs, accounts: { local, replicated, elsewhere }, finish };
};

const afterSwitch = (all: readonly Repetition[]) => [
  resumed(all, 'longest from the switch until work goes on', 1_000),
  ...losses(all),
  ...ofTenants(all),
  ...common(all),
];

export const trials: readonly FailoverTrial[] = [
  {
    name: 'planned',
    what: 'SENTINEL FAILOVER under load',
    times: 20,
    run: () => bySentinel(sentinelFailover('planned')),
    judge: afterSwitch,
  },
  {
    name: 'killed',
    what: 'SIGKILL of the primary under load',
    times: 5,
    run: () => bySentinel(sentinelFailover('killed')),
    judge: afterSwitch,
  },
  {
    name: 'stopped',
    what: 'SIGSTOP of the primary under load, SIGCONT after the failover',
    times: 10,
    run: () => bySentinel(sentinelFailover('stopped')),
    judge: afterSwitch,
  },
  {
    name: 'split',
    what: 'the network falls apart with the application on the side of the old primary; needs root',
    times: 10,
    run: () => bySentinel(networkSplit()),
    judge: (all) => [
      resumed(all, 'longest from the mending of the network until work goes on at the new primary'),
      ...losses(all),
      ...ofTenants(all),
      ...common(all),
    ],
  },
  {
    name: 'node-killed',
    what: 'SIGKILL of a master of a cluster of six under load',
    times: 5,
    run: () => onCluster(nodeKilled()),
    judge: (all) => [
      resumed(all, 'longest from the kill until work goes on', 5_000),
      ...losses(all),
      ...common(all),
    ],
  },
  {
    name: 'slot-moved',
    what: 'a slot goes to another master key by key under load, and stays half-way for ten seconds',
    times: 20,
    run: () => onCluster(slotMoved(10_000)),
    judge: (all) => [
      ...losses(all).map((figure) => ({ ...figure, equals: 0 })),
      {
        what: 'settled twice',
        value: total(all, ({ settledTwice }) => settledTwice.length, 'local', 'replicated', 'elsewhere'),
        equals: 0,
      },
      {
        what: 'CROSSSLOT',
        value: sum(
          all.map(({ finish }) => finish.complaints.filter((text) => text.includes('CROSSSLOT')).length),
        ),
        equals: 0,
      },
      ...common(all),
    ],
  },
];
