import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useServer } from '../support/server.js';
import { sequences } from './commands.js';
import { Rig } from './rig.js';
import { runsOf } from './runs.js';
import { Scene } from './scene.js';

// Commands one after another, each followed by a comparison of everything: what was answered, what is stored, what was
// said. Time is one of the commands.
const server = useServer();
let rig: Rig;

beforeAll(async () => {
  rig = await Rig.open(server.url);
});
afterAll(() => rig.close());

const COMMANDS = 40;
const runs = runsOf('sequential', 0.9);

it(
  'does and answers what the model does, whatever is lost, repeated, late, or broken by hand',
  async () => {
    const property = fc.asyncProperty(sequences(COMMANDS, runs.replayPath), async (commands) => {
      runs.tick();
      await fc.asyncModelRun(async () => {
        const scene = new Scene(rig);
        await rig.reset(scene.model.now);
        return { model: scene, real: rig };
      }, commands);
    });
    await expect(fc.assert(property, runs.parameters as never)).resolves.toBeUndefined();
  },
  runs.timeout,
);
