import { expect, it } from 'vitest';
import type { ExchangeAnswer } from '#lib/contract/engine.js';
import { Slots } from '#lib/worker/slots.js';
import { latch, until } from '../support/wait.js';
import { claimed, idle, turns, withoutBell } from './slow-engine.js';

it('asks for a queue when its limit allows more starts, although another queue had all slots at that time', async () => {
  const engine = withoutBell();
  const { poolOf } = await idle({ engine });
  const moved = latch('the due jobs were moved');
  const found = latch<ExchangeAnswer>();
  let isHeld = false;
  let asked = 0;
  engine.promote = async () => {
    moved.open();
    return { promoted: 0, dueInMs: null };
  };
  engine.exchange = async (queue) => {
    if (queue === 'second') {
      asked += 1;
      return { ...claimed(), supply: { limitedForMs: 300 } } as ExchangeAnswer;
    }
    return isHeld ? found.promise : claimed();
  };
  const slots = new Slots(2);
  const [first, second] = ['first', 'second'].map((name) => poolOf(name, slots));
  first!.start();
  second!.start();
  await until(() => asked > 0);
  await turns();
  isHeld = true;
  first!.claimer.wake();
  await moved.promise;
  const before = asked;
  found.open(claimed());
  await until(() => asked > before);
  expect(slots.running).toBe(0);
});
