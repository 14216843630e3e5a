import { Inject, Injectable, Module, Scope, type OnModuleDestroy, type Type } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { Handle } from '#lib/decorators/handle.decorator.js';
import { JOB_REF } from '#lib/decorators/metadata.js';
import { Processor } from '#lib/decorators/processor.decorator.js';
import type { Job } from '#lib/job/job.js';
import { gate, startApp, type History } from './fakes.js';

/** A client as that of an ORM. Its own hook closes it, and it cannot be used afterwards. */
@Injectable()
class Client implements OnModuleDestroy {
  isOpen = true;
  history: History = [];
  async onModuleDestroy() {
    this.isOpen = false;
    this.history.push('client closed');
  }
}

/** A provider between the client and the processor, made for each job. */
@Injectable({ scope: Scope.REQUEST })
class Repository {
  constructor(
    readonly client: Client,
    @Inject(JOB_REF) readonly job: Job,
  ) {}
  save() {
    this.client.history.push(`${this.job.name} saved, client ${this.client.isOpen ? 'open' : 'closed'}`);
  }
}

/** Runs one job while the application closes. Returns what happened from then on. */
async function closeDuringJob(metadata: (processor: Type) => Parameters<typeof startApp>[1]) {
  const held = gate();
  const started = gate();
  @Processor('email')
  class Mails {
    constructor(readonly repository: Repository) {}
    @Handle()
    async save() {
      started.open();
      await held.opened;
      this.repository.save();
    }
  }
  const history: History = [];
  const { app, pool, logs } = await startApp(['email'], metadata(Mails), { history });
  app.get(Client, { strict: false }).history = history;
  const run = pool('email').run('invoice');
  await started.opened;
  history.length = 0;
  const closing = app.close();
  await pool('email').draining;
  held.open();
  await Promise.all([run, closing]);
  return { history, logs };
}

const ORDERLY = [
  'email draining',
  'invoice saved, client open',
  'email drained',
  'services stopped',
  'client closed',
  'engine closed',
];

describe('a request-scoped processor, which has no hooks of its own, is drained', () => {
  it.each(['own', 'global'])('before a client in its %s module is closed', async (kind) => {
    @Module({ providers: [Client], exports: [Client] })
    class ClientModule {}
    const { history } = await closeDuringJob((Mails) => {
      const imported = kind === 'own' ? [ClientModule] : [];
      @Module({ imports: imported, providers: [Mails, Repository] })
      class MailModule {}
      return {
        imports: [kind === 'own' ? ClientModule : { module: ClientModule, global: true }, MailModule],
      };
    });
    expect(history).toEqual(ORDERLY);
  });

  it('before a client in its own module is closed', async () => {
    const { history } = await closeDuringJob((Mails) => {
      @Module({ providers: [Client, Mails, Repository] })
      class MailModule {}
      return { imports: [MailModule] };
    });
    expect(history).toEqual(ORDERLY);
  });

  it('before the hook of its module', async () => {
    const order: string[] = [];
    const { history } = await closeDuringJob((Mails) => {
      @Module({ providers: [Client, Mails, Repository] })
      class MailModule implements OnModuleDestroy {
        constructor(readonly client: Client) {}
        onModuleDestroy() {
          order.push(...this.client.history, 'own hook of MailModule');
        }
      }
      return { imports: [MailModule] };
    });
    expect(order.slice(-2)).toEqual(['client closed', 'own hook of MailModule']);
    expect(history).toEqual(ORDERLY);
  });

  it('and a hook that throws is logged, and keeps nothing from being closed', async () => {
    const { history, logs } = await closeDuringJob((Mails) => {
      @Module({ providers: [Client, Mails, Repository] })
      class MailModule implements OnModuleDestroy {
        onModuleDestroy() {
          throw new Error('cannot say goodbye');
        }
      }
      return { imports: [MailModule] };
    });
    expect(history).toEqual(ORDERLY);
    expect(logs.filter(({ level }) => level === 'error').map(({ text }) => text)).toEqual([
      'MailModule.onModuleDestroy: cannot say goodbye',
    ]);
  });
});

it('a warning names the hooks of a request-scoped processor, which are never called', async () => {
  @Processor('email', { scope: Scope.REQUEST })
  class Mails implements OnModuleDestroy {
    @Handle()
    any() {}
    onModuleInit() {}
    onModuleDestroy() {}
  }
  const { logs } = await startApp(['email'], { providers: [Mails] });
  expect(logs.filter(({ level }) => level === 'warn').map(({ text }) => text)).toEqual([
    'Mails is created for each job, itself or through something it injects, and Nest does not call onModuleInit and onModuleDestroy ' +
      'of such a class; make it and its dependencies singletons, or put the hook on its module',
  ]);
});
