import { beforeEach, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import type { Claimer } from '#lib/worker/claimer.js';
import { DueJobs } from '#lib/worker/due-jobs.js';
import { Registrar } from '#lib/worker/registrar.js';
import { Slots, SlotUser } from '#lib/worker/slots.js';
import { atEnd } from '../support/cleanup.js';

// An exception in a timer would end the process. It is reported once, and the work of the timer goes on.

let told: string[];

beforeEach(() => {
  vi.useFakeTimers();
  atEnd(() => vi.useRealTimers());
  told = [];
  const error = vi
    .spyOn(Logger.prototype, 'error')
    .mockImplementation((text: string) => void told.push(text));
  atEnd(() => error.mockRestore());
});

/** Throws in the first calls. */
function failing(times: number) {
  return vi.fn<() => void>(() => {
    if (times-- > 0) throw new Error('unforeseen');
  });
}

it('a process keeps updating its record', () => {
  const show = failing(2);
  const engine = {
    now: () => 1_000_000 + performance.now(),
    processes: { server: 'Redis 8', worksOn: async () => {} },
  };
  const registrar = new Registrar(engine as never, { show }, 'both', 8_000, () => {});
  atEnd(() => registrar.stop());
  registrar.say('running');
  vi.advanceTimersByTime(6_000);
  expect(show).toHaveBeenCalledTimes(4);
  expect(told).toEqual(['writing the record of this process: unforeseen']);
});

it('due jobs are moved a little later', async () => {
  const failed = failing(2);
  const promote = vi.fn<() => Promise<unknown>>(() => {
    failed();
    return Promise.resolve({ promoted: 1, dueInMs: null });
  });
  const claimer = { queue: 'work', want: () => 0, mayHaveJobs: () => undefined };
  const jobs = new DueJobs({ promote } as never, claimer as Claimer);
  atEnd(() => jobs.stop());
  jobs.plan(10);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(promote).toHaveBeenCalledTimes(3);
  expect(told).toEqual(["queue 'work': moving due jobs: unforeseen"]);
});

class IdleUser extends SlotUser {
  readonly open = true;
  readonly held = 0;
  readonly ahead = 0;
  readonly gathering = 0;

  constructor(
    slots: Slots,
    readonly exchangeSoon: () => void,
  ) {
    super(slots);
  }

  startOne(): boolean {
    return true;
  }
  noSlot(): void {}
  giveBack(): void {}
  flush(): void {}
}

it('queues that share slots are asked a little later', async () => {
  const slots = new Slots(5);
  const ask = failing(2);
  const other = vi.fn<() => void>();
  const [first] = [ask, other].map((act) => new IdleUser(slots, act));
  first!.openChanged();
  await vi.advanceTimersByTimeAsync(2_500);
  expect(ask.mock.calls.length + other.mock.calls.length).toBeGreaterThanOrEqual(3);
  expect(told).toEqual(['assigning slots to queues: unforeseen']);
});
