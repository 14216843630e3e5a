import type { Type } from '@nestjs/common';
import { expect, it } from 'vitest';
import { blockUnder, run } from '../support/page-code.js';
import { bootQueue, PATIENT, processorOf } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { collect, latch, until } from '../support/wait.js';

const PAGE = 'docs/guides/migrating-from-bullmq.md';
const redis = useRedis();

interface Films {
  readonly FilmsProcessor: Type;
}

async function bootFilms(render: (scene: string) => unknown) {
  const { FilmsProcessor } = await run<Films>(blockUnder(PAGE, 'Flows'));
  return bootQueue(redis, {
    queues: [{ name: 'films' }, { name: 'scenes' }],
    providers: [
      FilmsProcessor,
      processorOf('scenes', { render: (job) => render((job.data as { scene: string }).scene) }),
    ],
  });
}

it('a chain adds its next link', async () => {
  const { queueOf, events } = await bootFilms(() => null);
  const said = collect(events.of('films'));
  await events.ready('films');
  const { id } = await queueOf('films').add('cut', { film: 'Metropolis' });
  const published = await said.first(
    (event) => event.type === 'completed' && event.jobId === `publish-${id}`,
    PATIENT,
  );
  expect(published).toMatchObject({ name: 'publish', attempt: 1 });
});

it('a job that needs the results of others adds them once, and has them on a later look', async () => {
  const rendered: string[] = [];
  const looked = latch();
  const { queueOf } = await bootFilms(async (scene) => {
    rendered.push(scene);
    await looked.promise;
    return scene.toUpperCase();
  });
  const films = queueOf('films');
  const { id } = await films.add('assemble', { scenes: ['a', 'b', 'c'] }, { retention: '1m' });
  // It looks again after 5 s. The test need not wait so long.
  await until(async () => (await films.get(id))?.state === 'delayed', PATIENT);
  looked.open();
  const scenes = queueOf('scenes');
  await until(async () => (await scenes.stats()).total.processed === 3, PATIENT);
  await films.promote(id);
  await until(async () => (await films.get(id))?.state === 'completed', PATIENT);
  expect((await films.get(id))?.result).toEqual(['A', 'B', 'C']);
  expect(rendered.toSorted()).toEqual(['a', 'b', 'c']);
  expect((await films.get(id))?.attempt).toBe(1);
});

it('a job that needs others fails if one of them is dead', async () => {
  const { queueOf } = await bootFilms(() => {
    throw new Error('no film in the camera');
  });
  const films = queueOf('films');
  const { id } = await films.add('assemble', { scenes: ['a'] }, { attempts: 1 });
  await until(async () => (await films.get(id))?.state === 'delayed', PATIENT);
  const scenes = queueOf('scenes');
  await until(async () => {
    const state = (await scenes.get(`${id}/0`))?.state;
    if (state === 'delayed') await scenes.promote(`${id}/0`);
    return state === 'dead';
  }, PATIENT);
  await films.promote(id);
  await until(async () => (await films.get(id))?.state === 'dead', PATIENT);
  expect((await films.get(id))?.failure?.message).toBe('a scene cannot be rendered');
});

it('the example of a test runs its handler without Redis, and an hour later in no time', async () => {
  const { transcodes } = await run<{ transcodes: () => Promise<unknown> }>(blockUnder(PAGE, 'Tests'));
  expect(await transcodes()).toEqual({ made: 'a.ogg', early: 0, due: 1 });
});
