import { describe, expect, it } from 'vitest';
import { allScripts, defineScript } from '#lib/engine/script.js';
import { enqueuePlain } from '#lib/engine/scripts/enqueue-plain.js';

describe('arguments that a script lists itself', () => {
  it.each<[string, (args: { from: number; to: number }, out: { push(...values: number[]): void }) => void]>([
    ['in another order', ({ from, to }, out) => out.push(to, from)],
    ['without one of them', ({ from }, out) => out.push(from)],
    ['one of them twice', ({ from, to }, out) => out.push(from, to, to)],
  ])('are refused %s', (_, listArgs) => {
    const args = { from: 'int', to: 'int' } as const;
    const shape = { name: 'beat', memory: 'read', keys: [], args, listArgs, reply: Number } as const;
    expect(() => defineScript(shape)).toThrow(/^beat lists .*, not from,to$/);
    expect(allScripts().filter(({ name }) => name === 'beat').length).toBeLessThan(2);
  });

  it('are those that the script reads', () => {
    const keysOf = ({ keys }: { keys: readonly string[] }) =>
      Object.fromEntries(keys.map((key) => [key, key])) as never;
    const plain = { seq: 1, rememberMs: 2, maxEvents: 3, jobs: 4, ids: 'id', bodies: 'body', names: 'name' };
    expect(enqueuePlain.encode(keysOf(enqueuePlain), plain, {}).slice(8)).toEqual(Object.values(plain));
  });
});
