import fc from 'fast-check';
import { Command } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { FlatCommand } from '#lib/engine/command.js';

const written = (command: Command) => Buffer.from(command.toWritable({}) as string);

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

  it('keeps its arguments for those who look at commands', () => {
    expect(new FlatCommand('get', ['key', 1]).args).toEqual(['key', 1]);
  });
});
