import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { sequences } from './commands.js';
import { MemoryRig } from './memory-rig.js';
import { runsOf } from './runs.js';
import { Scene } from './scene.js';

// The same commands as on Redis, but for what operators do to its keys: every verb does and answers what the model does, and leaves
// and says the same.
const COMMANDS = 40;
const runs = runsOf('memory', 0.3);

it(
  'does and answers in memory what the model does, whatever is lost, repeated or late',
  async () => {
    const commands = sequences(COMMANDS, runs.replayPath, 'memory') as unknown as fc.Arbitrary<
      Iterable<fc.AsyncCommand<Scene<MemoryRig>, MemoryRig>>
    >;
    const property = fc.asyncProperty(commands, async (drawn) => {
      runs.tick();
      await fc.asyncModelRun(async () => {
        const rig = new MemoryRig();
        const scene = new Scene(rig);
        await rig.reset(scene.model.now);
        return { model: scene, real: rig };
      }, drawn);
    });
    await expect(fc.assert(property, runs.parameters as never)).resolves.toBeUndefined();
  },
  runs.timeout,
);
