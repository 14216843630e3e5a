import { NAME, OPTION, withOptions, type Case } from './bad-input.cases.js';

/** Calls with wrong limits, groups and keys. */
export const flowCases: Case[] = [
  [
    'an aggregate that may be larger than jobs of the queue',
    OPTION,
    'add().options.aggregate.maxBytes must be at most 1000, the maxPayloadBytes of the queue, got 1001',
    withOptions({ aggregate: { key: 'k', maxDelay: '1s', maxBytes: 1_001 } }),
  ],
  [
    'a group in an object, as in BullMQ Pro',
    OPTION,
    'a group is its name, so write it without an object around it',
    withOptions({ group: { id: 'tenant-7' } }),
  ],
  [
    'an aggregate whose grace is longer than its longest delay',
    OPTION,
    'add().options.aggregate.grace must be at most maxDelay, got "1m" (string)',
    withOptions({ aggregate: { key: 'k', maxDelay: '1s', grace: '1m' } }),
  ],
  [
    'new data for jobs that never wait',
    OPTION,
    "unique.states must be a list with 'waiting' or 'delayed' if onDuplicate is 'replace'",
    withOptions({ unique: { key: 'k', states: ['active', 'dead'], onDuplicate: 'replace' } }),
  ],
  [
    'the last of those in some states',
    OPTION,
    "unique.states must be left out if onDuplicate is 'keepLast'",
    withOptions({ unique: { key: 'k', states: ['waiting'], onDuplicate: 'keepLast' } }),
  ],
  [
    'a time for the last of those that run',
    OPTION,
    "add().options.delay must be left out if unique.onDuplicate is 'keepLast': the end of the other job decides",
    withOptions({ delay: '5s', unique: { key: 'k', onDuplicate: 'keepLast' } }),
  ],
  ...(['', 'x'.repeat(257), 'a\nb', 7, null] as const).flatMap((group): Case[] => {
    const rule = 'must be a string of 1 to 256 bytes without control characters';
    const given = JSON.stringify(group).slice(0, 20);
    return [
      [`a job of the group ${given}`, OPTION, `add().options.group ${rule}`, withOptions({ group })],
      [
        `a handle of the group ${given}`,
        OPTION,
        `group() ${rule}`,
        async ({ queue }) => queue.group(group as never),
      ],
      ...(group === null
        ? []
        : [
            [
              `reasons to wait in the group ${given}`,
              OPTION,
              `limits.holding().group ${rule}`,
              ({ queue }) => queue.limits.holding({ name: 'a', group: group as never }),
            ] satisfies Case,
          ]),
    ];
  }),
  [
    'reasons to wait with a cost of 0',
    OPTION,
    'limits.holding().cost must be an integer from 1 to 1000000000, got 0',
    ({ queue }) => queue.limits.holding({ name: 'a', cost: 0 }),
  ],
  [
    'a limit of an empty name',
    NAME,
    'a job name is 1 to 255 bytes',
    ({ queue }) => queue.limits.set({ concurrency: 1 }, { name: '' }),
  ],
  ...(['set', 'clear', 'hold', 'release'] as const).map((verb): Case => [
    `limits.${verb}() of a name that is undefined`,
    OPTION,
    `limits.${verb}().name must be a value, or left out to mean the whole queue, got undefined`,
    ({ queue: { limits } }) => {
      const of = { name: undefined } as object;
      if (verb === 'set') return limits.set({ concurrency: 1 }, of);
      return verb === 'hold' ? limits.hold('1h', of) : limits[verb](of);
    },
  ]),
  ...(['set', 'hold'] as const).map((verb): Case => [
    `limits.${verb}() of a pattern of names`,
    OPTION,
    `limits.${verb}().name must be the exact name of jobs, without *: each name has its own limits, got "mail.*"`,
    ({ queue: { limits } }) => {
      const of = { name: 'mail.*' };
      return verb === 'set' ? limits.set({ concurrency: 1 }, of) : limits.hold('1h', of);
    },
  ]),
  [
    'a change of limits without a field',
    OPTION,
    'limits.set() must be an object with rate, concurrency, breaker or retryBudget, got {}',
    ({ queue }) => queue.limits.set({}),
  ],
  [
    'a change of the limits of a name whose field is undefined',
    OPTION,
    'limits.set() must be an object with rate, concurrency, breaker or retryBudget, got ',
    ({ queue }) => queue.limits.set({ rate: undefined } as object, { name: 'job' }),
  ],
  [
    'a change of a shared limit without a field',
    OPTION,
    'shared().set() must be an object with rate, concurrency or breaker, got {}',
    ({ queue }) => queue.limits.shared('api').set({}),
  ],
  [
    'a change of a group without a field',
    OPTION,
    'group().set() must be an object with rate, concurrency, maxSize, weight or paused, got {}',
    ({ queue }) => queue.group('t7').set({}),
  ],
  [
    'a shared limit with a space in its name',
    OPTION,
    'limits.shared() must be a name of 1 to 64 of [A-Za-z0-9._-], got "open ai"',
    async ({ queue }) => queue.limits.shared('open ai'),
  ],
  [
    'a page of no groups',
    OPTION,
    'groups().limit must be an integer from 1 to 1000',
    ({ queue }) => queue.groups({ limit: 0 }),
  ],
];
