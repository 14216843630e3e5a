import * as fc from 'fast-check';
import type { Fate, Rig } from './rig.js';
import type { Scene } from './scene.js';

export type ModelCommand = fc.AsyncCommand<Scene, Rig>;

/** Two made ids have one letter, one has another; the order of bytes and that of UTF-16 differ among the last. */
export const IDS = [
  'a',
  'b',
  '0mwtqbbga5wm6p6000A',
  '0mwtqbbga5wm6p6001A',
  '0mwtqbbga5wm6p6002Z',
  '__proto__',
  'meta',
  '\u{1F600}',
  '\uE000',
];
export const NEVER_ADDED = 'never added';

export const id = fc.constantFrom(...IDS);
export const name = fc.constantFrom('work', 'mail', 'constructor');
/** One of the workers of the scene, by its number. */
export const speaker = fc.nat({ max: 2 });
export const oneIn = (n: number) => fc.nat({ max: n - 1 }).map((drawn) => drawn === 0);

export const fate = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fate>('answered') },
  { weight: 2, arbitrary: fc.constant<Fate>('reply lost') },
  { weight: 1, arbitrary: fc.constant<Fate>('call lost') },
);

/** A command: its name, its random values, and what it does with them. */
export function command<T>(
  called: string,
  drawn: fc.Arbitrary<T>,
  act: (scene: Scene, drawn: T) => Promise<unknown>,
): fc.Arbitrary<ModelCommand> {
  return drawn.map((value) => ({
    check: () => true,
    run: async (scene: Scene) => void (await act(scene, value)),
    toString: () => `${called}(${JSON.stringify(value) ?? ''})`,
  }));
}

/** Several commands in turn, as one: for states that commands drawn one by one seldom reach. */
export function inTurn(
  called: string,
  ...parts: readonly fc.Arbitrary<ModelCommand>[]
): fc.Arbitrary<ModelCommand> {
  return fc.tuple(...parts).map((commands) => ({
    check: () => true,
    run: async (scene: Scene, rig: Rig) => {
      for (const each of commands) await each.run(scene, rig);
    },
    toString: () => `${called}: ${commands.join(', ')}`,
  }));
}
