import type { Writable } from 'node:stream';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { FlatCommand } from '#lib/engine/command.js';
import { FixedArgs } from '#lib/engine/fixed-args.js';
import { LARGE, mibLeftOf } from '../support/young.js';

/** A socket that keeps what is written to it. */
function listening() {
  const pieces: Buffer[] = [];
  const write = (chunk: string | Buffer, encoding?: BufferEncoding) =>
    pieces.push(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk);
  return { pieces, socket: { cork: () => {}, uncork: () => {}, write } as unknown as Writable };
}

/** All that reaches the socket, as ioredis has it written. */
function written(command: Command): Buffer {
  const { pieces, socket } = listening();
  const last = command.toWritable(socket);
  return Buffer.concat([...pieces, Buffer.from(last as string)]);
}

describe('a command of ours', () => {
  it('is written as ioredis writes it, whatever its arguments are', () => {
    const arg = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 3000 }), fc.maxSafeInteger());
    fc.assert(
      fc.property(fc.array(arg, { maxLength: 40 }), (args) => {
        const theirs = new Command('evalsha', args as string[]);
        expect(written(new FlatCommand('evalsha', args))).toEqual(written(theirs));
      }),
    );
  });

  it('is written the same where its first arguments are fixed, also behind somebody who has changed the first', () => {
    const arg = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 3000 }), fc.maxSafeInteger());
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
    const arg = fc.oneof(large, fc.string({ unit: 'binary' }), fc.maxSafeInteger());
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

  it('keeps its arguments for those who look at commands', () => {
    expect(new FlatCommand('get', ['key', 1]).args).toEqual(['key', 1]);
  });

  it('has its reply once, and its promise tells only that there is one', async () => {
    const command = new FlatCommand('lrange', ['key', 0, -1]);
    command.resolve([Buffer.from('a'), [Buffer.from('b')], 1, null]);
    expect(await command.promise).toBeUndefined();
    expect(command.takeReply()).toEqual(['a', ['b'], 1, null]);
    expect(command.takeReply()).toBeUndefined();
  });

  it('keeps neither reply nor arguments from quick collections', () => {
    const large = Buffer.alloc(LARGE, 'x');
    let chars = 0;
    const left = mibLeftOf(300, () => {
      const command = new FlatCommand('get', ['key', large.toString()]);
      command.resolve(large);
      chars += (command.takeReply() as string).length;
    });
    expect(chars).toBe(320 * LARGE);
    expect(left).toBeLessThan(10);
  });
});
