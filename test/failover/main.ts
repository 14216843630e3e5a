import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { runCleanup } from '../support/cleanup.js';
import { format, table } from '../trials/report.js';
import type { Result } from '../trials/trial.js';
import { trials, type FailoverTrial, type Repetition } from './trials.js';

const HELP = `Failovers under load, by Sentinel and in a Cluster, with a ledger outside Redis.

  npm run failover                              all, one after another
  npm run failover -- planned split --times 3   some of them
  --times <n>     repetitions of each
  --json <file>   where the results are written
  --help          this text

${trials.map(({ name, what, times }) => `  ${name.padEnd(14)}${what} (${times})`).join('\n')}
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { times: { type: 'string' }, json: { type: 'string' }, help: { type: 'boolean' } },
});
const unknown = positionals.filter((name) => !trials.some((trial) => trial.name === name));
const times = values.times === undefined ? undefined : Number(values.times);
const isWrong = unknown.length > 0 || (times !== undefined && !(Number.isInteger(times) && times > 0));
if (values.help || isWrong) {
  process.stdout.write(HELP);
  process.exitCode = isWrong ? 2 : 0;
} else {
  const chosen = trials.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
  process.exitCode = await runAll(chosen);
}

async function runAll(chosen: readonly FailoverTrial[]): Promise<number> {
  const print = (text: string) => process.stdout.write(`${text}\n`);
  const results: Result[] = [];
  let failed = 0;
  for (const trial of chosen) {
    const done: Repetition[] = [];
    const wanted = times ?? trial.times;
    for (let i = 1; i <= wanted; i++) {
      try {
        const one = await trial.run();
        done.push(one);
        print(`${trial.name} ${i}/${wanted}: ${describe(one)}`);
      } catch (error) {
        failed += 1;
        print(`${trial.name} ${i}/${wanted} FAILED: ${String((error as Error).stack)}`);
      }
      await runCleanup();
    }
    if (done.length > 0) results.push(...trial.judge(done).map((figure) => format(trial.name, figure)));
  }
  print(`\n${table(results)}`);
  const broken = results.filter(({ pass }) => !pass);
  print(
    `\nfailover: ${chosen.map(({ name }) => name).join(', ')}: ${failed} repetitions failed, ` +
      `${broken.length} of ${results.length} figures are not what they must be`,
  );
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
  return failed + broken.length > 0 ? 1 : 0;
}

function describe({ resumedMs, accounts, finish }: Repetition): string {
  const each = Object.entries(accounts).map(
    ([queue, { acknowledged, lost, ranAgain }]) =>
      `${queue} ${acknowledged} acknowledged, ${lost.length} lost, ${ranAgain} run again`,
  );
  return [
    `work went on after ${resumedMs} ms`,
    ...each,
    ...(finish.violations.length > 0 ? [JSON.stringify(finish.violations.slice(0, 3))] : []),
    ...finish.unhandled.slice(0, 3),
  ].join('; ');
}
