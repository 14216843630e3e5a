import { away } from './away.js';
import { block } from './block.js';
import { clocks } from './clocks.js';
import { cuts } from './cuts.js';
import { delays } from './delays.js';
import { dispatcher } from './dispatcher.js';
import { halfOpen } from './half-open.js';
import { maxmemory } from './maxmemory.js';
import { recovery } from './recovery.js';
import { schedules } from './schedules.js';
import { tail } from './tail.js';
import { threeKills } from './three-kills.js';
import type { Trial } from './trial.js';
import { volume } from './volume.js';
import { zombies } from './zombies.js';

/** All trials. Those that mostly wait come first. */
export const trials: readonly Trial[] = [
  away,
  block,
  recovery,
  threeKills,
  halfOpen,
  zombies,
  clocks,
  maxmemory,
  cuts,
  delays,
  dispatcher,
  schedules,
  tail,
  volume,
];
