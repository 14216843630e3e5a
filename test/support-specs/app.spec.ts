import { Controller, Get, Inject, Injectable, Sse, type OnModuleDestroy } from '@nestjs/common';
import { NEVER, startWith } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { bootApp } from '../support/app.js';
import { bootQueue } from '../support/queue-app.js';
import { useRedis } from '../support/redis.js';

const destroyed: string[] = [];

@Injectable()
class Clock implements OnModuleDestroy {
  now = () => 'real';

  onModuleDestroy(): void {
    destroyed.push('clock');
  }
}

@Controller()
class ClockController {
  // By its type alone: this needs the decorator metadata of the test files themselves.
  constructor(
    private readonly clock: Clock,
    @Inject('zone') private readonly zone: string,
  ) {}

  @Get('now')
  now(): string {
    return `${this.clock.now()} ${this.zone}`;
  }

  @Sse('stream')
  stream() {
    return NEVER.pipe(startWith({ data: 'open' }));
  }
}

const parts = { providers: [Clock, { provide: 'zone', useValue: 'utc' }], controllers: [ClockController] };

describe('bootApp', () => {
  it('starts the given modules, without HTTP', async () => {
    const { get } = await bootApp(parts);
    expect(get(Clock).now()).toBe('real');
    expect(get<string>('zone')).toBe('utc');
    expect(process.listenerCount('SIGTERM')).toBe(0);
  });

  it('answers over HTTP, with overridden providers', async () => {
    const { url } = await bootApp({
      ...parts,
      http: true,
      override: (module) => module.overrideProvider(Clock).useValue({ now: () => 'fake' }),
    });
    expect(await (await fetch(`${url}/now`)).text()).toBe('fake utc');
  });

  it('closes while a stream is open', async () => {
    const { url, close } = await bootApp({ ...parts, http: true });
    const response = await fetch(`${url}/stream`);
    expect(response.status).toBe(200);
    const ended = response.text().catch(() => 'cut');
    await close();
    await ended;
    await close();
  });

  it('fails with the error of Nest', async () => {
    await expect(bootApp({ controllers: [ClockController] })).rejects.toThrow("can't resolve dependencies");
  });

  it('has closed the applications of the tests before', () => {
    expect(destroyed).toEqual(['clock', 'clock']);
  });
});

describe('bootQueue', () => {
  const redis = useRedis();

  it('listens to SIGTERM once, however many applications a test starts', async () => {
    await Promise.all([bootQueue(redis), bootQueue(redis)]);
    expect(process.listenerCount('SIGTERM')).toBe(1);
  });
});
