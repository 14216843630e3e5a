import { describe, expect, it } from 'vitest';
import { bootQueue, PATIENT } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';
import { until } from '../support/wait.js';
import { godwitOn, runOn } from './support.js';

const redis = useRedis();

const run = (...words: string[]) => runOn(redis, ...words);

describe('tail', () => {
  it('prints the reason and the error of a failed attempt, also where the line is cut', async () => {
    const { queue } = await bootQueue(redis, {
      watch: false,
      handlers: {
        bad: () => {
          throw new TypeError('the mailer says no');
        },
      },
      queue: { defaults: { attempts: 2, backoff: 0 } },
    });
    await queue.add('bad', null, { id: 'a' });
    await until(async () => (await queue.counts()).dead === 1, PATIENT);
    process.env['COLUMNS'] = '80';
    const command = godwitOn(redis, 'tail', 'work', '--since', '0', '--type', 'retrying,dead');
    delete process.env['COLUMNS'];
    await command.said(/ dead /);
    await command.end('SIGINT');
    expect(command.out).toMatch(/ retrying +bad +a +TypeError: the mailer says no/);
    expect(command.out).toMatch(/ dead +bad +a +retries-exhausted: TypeError: the mailer says no\n/);
    expect(command.out).not.toContain('stack');
  });

  it('refuses a type that does not exist', async () => {
    const { code, err } = await run('tail', '--type', 'dead,cancelld');
    expect(code).toBe(2);
    expect(err).toMatch(/--type: "cancelld" is not one of added, delayed, .*; did you mean cancelled\?\n/);
  });
});
