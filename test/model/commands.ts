import * as fc from 'fast-check';
import { command, type ModelCommand } from './command.js';
import { corruptions } from './corruptions.js';
import {
  advance,
  cancel,
  clean,
  count,
  flushScripts,
  look,
  obliterate,
  pause,
  promote,
  promoteNow,
  recover,
  recovery,
  reload,
  remove,
  removeDead,
  resume,
  retryDead,
  sweep,
  trim,
  wake,
} from './upkeep-commands.js';
import { add, adopt, beat, claimAtBell, exchanged, note, release, replay } from './work-commands.js';

const RARE = 30;

/**
 * Sequences of at most so many commands; the common ones are in the list more often.
 *
 * @param on `memory`: where nobody can write but the engine.
 */
export function sequences(
  maxCommands: number,
  replayPath?: string,
  on: 'redis' | 'memory' = 'redis',
): fc.Arbitrary<Iterable<ModelCommand>> {
  const often = [
    add(4),
    exchanged('claim', 3, 0),
    exchanged('settle', 4, 4),
    exchanged('settle', 1, 3),
    advance(1, 500, 2_000, 6_001, 9_000),
    ...(on === 'redis' ? [claimAtBell] : []),
  ];
  const rare = fc.oneof(
    { weight: RARE, arbitrary: advance(-1_000, -30_000, 65_000, 700_000) },
    { weight: 5, arbitrary: obliterate },
    { weight: RARE, arbitrary: clean },
    ...(on === 'redis' ? byOperators() : []),
  );
  const usual = [
    replay,
    beat,
    release,
    note,
    adopt,
    sweep,
    recover,
    recovery,
    recovery,
    recovery,
    promote,
    wake,
    look,
    count,
    remove,
    cancel,
    cancel,
    retryDead,
    removeDead,
    trim,
  ];
  return fc.commands(
    [
      ...Array.from({ length: 8 }, () => often).flat(),
      ...usual,
      sweep,
      sweep,
      pause,
      resume,
      resume,
      promoteNow,
      ...(on === 'redis' ? [flushScripts] : []),
      rare,
      rare,
    ],
    { maxCommands, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) },
  );
}

const byOperators = () => [
  { weight: 1, arbitrary: reload },
  ...corruptions(command).map((arbitrary) => ({ weight: 2, arbitrary })),
];
