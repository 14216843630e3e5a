import { Logger, type LoggerService } from '@nestjs/common';
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Recorder } from '../../history/recorder.js';
import { LedgerWriter } from '../ledger/writer.js';
import type { ChildPlan, Figures, Said, Told } from '../plan.js';

const FIGURES_MS = 250;

export const plan = JSON.parse(process.env['PLAN']!) as ChildPlan;
export const recorder = Recorder.toFile(
  plan.mixed.file,
  join(plan.mixed.dir, plan.mixed.file),
  plan.mixed.epoch,
);
export const ledger = new LedgerWriter(plan.ledger, plan.epoch);

// A child that outlives the controller would keep the machine busy.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const event of ['unhandledRejection', 'uncaughtException']) {
  process.on(event, (error: unknown) => {
    ledger.write(`U ${oneLine(error)}\n`);
    process.exit(1);
  });
}

export function say(said: Said): void {
  if (process.connected) process.send!(said);
}

export function onTold(act: (told: Told) => unknown): void {
  process.on('message', (told) => void act(told as Told));
}

/** Sends figures from time to time as long as the process lives, without keeping it alive. */
export function tellFigures(figures: () => Partial<Figures>): void {
  const tell = () =>
    say({
      say: 'figures',
      figures: { added: 0, completed: 0, running: 0, cuts: 0, rss: process.memoryUsage.rss(), ...figures() },
    });
  setInterval(tell, FIGURES_MS).unref();
}

export function die(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;); // the signal is on its way; nothing may happen any more
}

/** Nest's log goes to a file beside the ledger, to investigate violations. */
export function fileLogger(): LoggerService {
  const file = openSync(`${plan.ledger}.txt`, 'a');
  const write =
    (level: string) =>
    (...words: unknown[]) =>
      void writeSync(file, `${ledger.now()} ${level} ${words.map(String).join(' ')}\n`);
  const logger = { log: write('log'), warn: write('warn'), error: write('error'), debug: write('debug') };
  Logger.overrideLogger(logger);
  return logger;
}

function oneLine(error: unknown): string {
  return String((error as Error)?.stack ?? error).replace(/\s+/g, ' ');
}
