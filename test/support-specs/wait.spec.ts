import { Subject, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { collect, latch, nextEvent, until, WaitError, within } from '../support/wait.js';

describe('waiting', () => {
  it('until: resolves with the first truthy answer', async () => {
    let asked = 0;
    expect(await until(() => (++asked === 3 ? 'there' : undefined))).toBe('there');
  });

  it('until: reports what it waited for, and the last error', async () => {
    const cause = new Error('not yet');
    const failing = until(() => Promise.reject(cause), { timeout: 20, what: 'the duck' });
    await expect(failing).rejects.toThrow(new WaitError('waited 20 ms in vain: the duck'));
    await expect(failing).rejects.toHaveProperty('cause', cause);
    await expect(until(() => false, { timeout: 1 })).rejects.toThrow('() => false');
  });

  it('until: asks once more if an answer came after the deadline', async () => {
    let asked = 0;
    const late = () => new Promise<boolean>((resolve) => setTimeout(resolve, 20, ++asked === 2));
    expect(await until(late, { timeout: 10 })).toBe(true);
    asked = 2;
    await expect(until(late, { timeout: 1 })).rejects.toThrow('waited 1 ms');
    expect(asked).toBe(4);
  });

  it('latch: opens once, for present and later waiters', async () => {
    const gate = latch<number>('the gate');
    await expect(gate.wait({ timeout: 5 })).rejects.toThrow('the gate is opened');
    const waiting = gate.wait();
    gate.open(1);
    gate.open(2);
    expect([await waiting, await gate.promise, gate.isOpen]).toEqual([1, 1, true]);
  });

  it('within: leaves no timer', async () => {
    await expect(within(Promise.reject(new Error('own')))).rejects.toThrow('own');
    expect(await within(Promise.resolve(1))).toBe(1);
  });

  it('collect: has past and coming values, and the end', async () => {
    const source = new Subject<number>();
    const seen = collect(source);
    source.next(1);
    const even = seen.take(2, (n) => n % 2 === 0);
    for (const n of [2, 3, 4]) source.next(n);
    expect(await even).toEqual([2, 4]);
    expect(await seen.first()).toBe(1);
    await expect(seen.take(9, undefined, { timeout: 5 })).rejects.toThrow('9 matching values, got 4 of 4');
    const never = seen.take(5);
    source.complete();
    await expect(never).rejects.toThrow('it ended after 4 of 5 values');
    expect(seen).toMatchObject({ values: [1, 2, 3, 4], ended: true, error: undefined });
  });

  it('collect: an observable that fails is not an uncaught error', async () => {
    const seen = collect(throwError(() => 'reason'));
    expect(seen).toMatchObject({ ended: true, error: 'reason' });
    await expect(seen.first()).rejects.toHaveProperty('cause', 'reason');
  });

  it('nextEvent: takes the next event from now on, then unsubscribes', async () => {
    const source = new Subject<string>();
    source.next('past');
    const next = nextEvent(source, (text) => text !== 'no');
    source.next('no');
    source.next('yes');
    expect(await next).toBe('yes');
    expect(source.observed).toBe(false);
    await expect(nextEvent(source, undefined, { timeout: 5 })).rejects.toThrow('the next event');
    expect(source.observed).toBe(false);
  });
});
