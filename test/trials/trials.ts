import { block } from './block.js';
import { halfOpen } from './half-open.js';
import { maxmemory } from './maxmemory.js';
import { recovery } from './recovery.js';
import { threeKills } from './three-kills.js';
import type { Trial } from './trial.js';

/** All there are, those that mostly wait first. */
export const trials: readonly Trial[] = [block, recovery, threeKills, halfOpen, maxmemory];
