import type { Writable } from 'node:stream';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { describe, expect, it, vi } from 'vitest';
import { FlatCommand } from '#lib/engine/wire/command.js';
import { FixedArgs } from '#lib/engine/wire/fixed-args.js';
import { character } from '../support/character.js';
import { LARGE, mibLeftOf } from '../support/young.js';

/** A socket that keeps what is written to it. */
function listening() {
  const pieces: Buffer[] = [];
  const write = (chunk: string | Buffer, encoding?: BufferEncoding) =>
    pieces.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
  return { pieces, socket: { cork: () => {}, uncork: () => {}, write } as unknown as Writable };
}

/** All that reaches the socket, as ioredis wrote it. */
function written(command: Command): Buffer {
  const { pieces, socket } = listening();
  const last = command.toWritable(socket);
  return Buffer.concat([...pieces, Buffer.from(last as string)]);
}

describe('a command of Godwit', () => {
  it('is written as ioredis writes it, whatever its arguments are', () => {
    const arg = fc.oneof(fc.string({ unit: character }), fc.string({ maxLength: 3000 }), fc.maxSafeInteger());
    fc.assert(
      fc.property(fc.array(arg, { maxLength: 40 }), (args) => {
        const theirs = new Command('evalsha', args as string[]);
        expect(written(new FlatCommand('evalsha', args))).toEqual(written(theirs));
      }),
    );
  });

  it('is written the same if its first arguments are fixed, also after other code has changed the first', () => {
    const arg = fc.oneof(fc.string({ unit: character }), fc.string({ maxLength: 3000 }), fc.maxSafeInteger());
    fc.assert(
      fc.property(
        fc.array(arg, { minLength: 1, maxLength: 12 }),
        fc.array(arg, { maxLength: 12 }),
        arg,
        (first, rest, other) => {
          const fixed = new FixedArgs(first);
          const ours = () => new FlatCommand('evalsha', [fixed, ...rest]);
          expect(ours().args).toEqual([...first, ...rest]);
          expect(written(ours())).toEqual(written(new Command('evalsha', [...first, ...rest] as string[])));
          const changed = ours();
          changed.args[0] = other as string;
          const theirs = new Command('evalsha', [other, ...first.slice(1), ...rest] as string[]);
          expect(written(changed)).toEqual(written(theirs));
        },
      ),
    );
  });

  it('is written the same with large arguments among others', () => {
    const large = fc
      .tuple(fc.constantFrom('x', 'ä', '€', '😀', 'xä'), fc.integer({ min: 8_000, max: 40_000 }))
      .map(([text, times]) => text.repeat(times));
    const arg = fc.oneof(large, fc.string({ unit: character }), fc.maxSafeInteger());
    fc.assert(
      fc.property(fc.array(arg, { minLength: 1, maxLength: 8 }), (args) => {
        const theirs = new Command('evalsha', args as string[]);
        const [first, ...rest] = args;
        const fixed = new FlatCommand('evalsha', [new FixedArgs([first!]), ...rest]);
        for (const ours of [new FlatCommand('evalsha', args), fixed]) {
          expect(written(ours).equals(written(theirs))).toBe(true);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('writes each large argument by itself, and the rest in one go', () => {
    const { pieces, socket } = listening();
    const large = 'x'.repeat(100_000);
    new FlatCommand('evalsha', ['sha', large, 'small', large, 'last']).toWritable(socket);
    expect(pieces.map(({ length }) => length > 1_000)).toEqual([false, true, false, true]);
  });

  it('keeps its arguments for tools that inspect commands', () => {
    expect(new FlatCommand('get', ['key', 1]).args).toEqual(['key', 1]);
  });

  it('ends once, with the first answer or error, and notifies its sender first', async () => {
    const told: FlatCommand[] = [];
    const sender = {
      ended: (command: FlatCommand) => void told.push(command),
      explain: (verb: string, error: Error) => new Error(`${verb}: ${error.message}`),
    };
    const answered = new FlatCommand('lrange', ['key', 0, -1], 'look', 0, Infinity, sender);
    answered.resolve([Buffer.from('a'), [Buffer.from('b')], 1, null]);
    answered.reject(new Error('too late'));
    expect(told).toEqual([answered]);
    expect(await answered.promise).toEqual(['a', ['b'], 1, null]);
    const failed = new FlatCommand('lrange', ['key', 0, -1], 'look', 0, Infinity, sender);
    failed.reject(new Error('no such list'));
    failed.resolve([Buffer.from('too late')]);
    expect(told).toEqual([answered, failed]);
    await expect(failed.promise).rejects.toThrow('look: no such list');
  });

  it('stays with its sender when its caller no longer waits, and ends with its answer', async () => {
    const told: FlatCommand[] = [];
    const sender = {
      ended: (command: FlatCommand) => void told.push(command),
      explain: (_: string, e: Error) => e,
    };
    const command = new FlatCommand('get', ['key'], 'look', 1_000, 10, sender);
    command.expire(new Error('no answer yet'), 0);
    await expect(command.promise).rejects.toThrow('no answer yet');
    expect(told).toEqual([]);
    expect(command.until).toBe(Infinity);
    command.resolve('an answer');
    expect(told).toEqual([command]);
  });

  it('fails if its answer cannot be read', async () => {
    const command = new FlatCommand('get', ['key']);
    const unreadable = Buffer.from('a');
    unreadable.toString = () => {
      throw new Error('too long for a string');
    };
    command.resolve(unreadable);
    await expect(command.promise).rejects.toThrow('too long for a string');
  });

  it('may have its methods wrapped by functions that call them without their object', async () => {
    const seen: unknown[] = [];
    const watch = (command: FlatCommand) => {
      const { resolve, reject } = command;
      command.resolve = (reply: unknown) => {
        seen.push(reply);
        resolve(reply);
      };
      command.reject = (error: Error) => {
        seen.push(error);
        reject(error);
      };
      return command;
    };
    const answered = watch(new FlatCommand('get', ['key']));
    answered.resolve('hello');
    expect(await answered.promise).toBe('hello');
    const failed = watch(new FlatCommand('get', ['key']));
    const error = new Error('no');
    failed.reject(error);
    await expect(failed.promise).rejects.toBe(error);
    expect(seen).toEqual(['hello', error]);
  });

  it('leaves no timer that ioredis has set for it', () => {
    vi.useFakeTimers();
    try {
      const command = new FlatCommand('get', ['key']);
      command.setTimeout(1_000);
      expect(vi.getTimerCount()).toBe(1);
      command.resolve('hello');
      expect(vi.getTimerCount()).toBe(0);
      const late = new FlatCommand('get', ['key']);
      late.setTimeout(1_000);
      vi.advanceTimersByTime(1_000);
      return expect(late.promise).rejects.toThrow('timed out');
    } finally {
      vi.useRealTimers();
    }
  });

  it('lets minor garbage collections free its reply and arguments', async () => {
    const large = Buffer.alloc(LARGE, 'x');
    let chars = 0;
    const left = await mibLeftOf(300, async () => {
      const command = new FlatCommand('get', ['key', large.toString()]);
      command.resolve(large);
      chars += (await command.promise).length;
    });
    expect(chars).toBe(320 * LARGE);
    expect(left).toBeLessThan(10);
  });
});
