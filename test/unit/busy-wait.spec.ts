import { expect, it } from 'vitest';
import { BusyWait } from '#lib/engine/busy-wait.js';

/** A machine on which nothing happens by itself. */
function machine(cores = 2) {
  const turns: (() => void)[] = [];
  const host = { cores, ms: 1_000, preempted: 3 };
  const wait = new BusyWait({
    cores,
    atNextTurn: (act) => void turns.push(act),
    now: () => host.ms,
    preemptions: () => host.preempted,
  });
  /** Turns of the loop, at most so many, that it asks for. */
  const turn = (most = Infinity): number => {
    let made = 0;
    for (; made < most && turns.length > 0; made++) turns.shift()!();
    return made;
  };
  /** An add right behind the answer to the one before, answered at this turn of the loop; how many turns were made for it. */
  const add = (answeredAt: number): number => {
    wait.begin();
    const made = turn(answeredAt);
    wait.end();
    // Else what is left of it might be taken for a turn of the next one.
    turn();
    return made;
  };
  return { host, wait, turn, add };
}

it('keeps the loop turning until the answer is there, for adds in turn', () => {
  const { add } = machine();
  expect(add(40)).toBe(0);
  expect([add(40), add(40), add(7)]).toEqual([40, 40, 7]);
});

it('ends with the last of them, one turn later', () => {
  const { add, turn, wait } = machine();
  add(1);
  wait.begin();
  expect(turn(20)).toBe(20);
  wait.end();
  wait.begin();
  expect(turn(20)).toBe(20);
  wait.end();
  expect(turn()).toBe(1);
});

it('lets the loop rest for an add that no answer has gone before, or not soon before', () => {
  const { add, host } = machine();
  expect(add(40)).toBe(0);
  host.ms += 0.3;
  expect(add(40)).toBe(0);
  host.ms += 0.1;
  expect(add(40)).toBe(40);
});

it('does nothing for adds behind one that has not been answered yet', () => {
  const { add, turn, wait } = machine();
  add(1);
  wait.begin();
  wait.begin();
  expect(turn(20)).toBe(20);
  wait.end();
  expect(turn(20)).toBe(20);
  wait.end();
  expect(turn()).toBe(1);
});

it('gives up after 128 turns, and waits asleep for more and more adds while that is of no use', () => {
  const { add } = machine();
  add(1);
  const made = Array.from({ length: 3_200 }, () => add(1_000));
  const tries = made.flatMap((turns, at) => (turns > 0 ? [at] : []));
  expect(new Set(made)).toEqual(new Set([0, 128]));
  expect(tries.slice(0, 12)).toEqual([0, 2, 6, 14, 30, 62, 126, 254, 510, 1_022, 2_046, 3_071]);
});

it('is as eager as before once an answer has come in time', () => {
  const { add } = machine();
  add(1);
  expect([add(1_000), add(40), add(1_000), add(40), add(40), add(40)]).toEqual([128, 0, 128, 0, 0, 0]);
  expect([add(40), add(1_000), add(40), add(40)]).toEqual([40, 128, 0, 40]);
});

it('waits asleep where others want the core', () => {
  const { add, host } = machine();
  add(1);
  const busy = (adds: number, preempted: number): number => {
    let waits = 0;
    for (let i = 0; i < adds; i++) {
      host.preempted += preempted;
      if (add(40) > 0) waits++;
    }
    return waits;
  };
  // What has been before it began says nothing.
  host.preempted = 1_000_000;
  expect(busy(256, 0.2)).toBe(256);
  expect(busy(64, 0.5)).toBe(64);
  // That is found out by the next one.
  expect(busy(1 + 1_024, 0)).toBe(0);
  // What has been meanwhile says nothing either.
  host.preempted += 1_000;
  expect(busy(256, 0.2)).toBe(256);
});

it('never keeps the only core from Redis', () => {
  const { add } = machine(1);
  expect([add(40), add(40), add(40)]).toEqual([0, 0, 0]);
});
