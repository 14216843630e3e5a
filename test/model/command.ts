import * as fc from 'fast-check';
import type { Fate, Rig } from './rig.js';
import type { Scene } from './scene.js';

export type ModelCommand = fc.AsyncCommand<Scene, Rig>;

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
