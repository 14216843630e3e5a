import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import Table from 'cli-table3';
import { Redis } from 'ioredis';
import { startRedis } from '../../../tools/redis.mjs';
import type { Contender } from '../contender.js';
import { CONTROL_NAME } from '../measure/connections.js';
import { wipe } from '../run/wipe.js';
import type { Proof, ProofOrder, Verdict } from './proof.js';
import { proofs } from './proofs.js';

const CHILD = fileURLToPath(new URL('./child.js', import.meta.url));

/** Each proof has a time limit of its own, with a message. This one ends a proof that does not get so far. */
const DEADLINE_MS = 60_000;

interface Finding {
  readonly contender: string;
  readonly proof: string;
  readonly verdict: Verdict;
}

/** Checks that each contender does what it offers; true if all do. Writes a table to stdout. */
export async function check(contenders: readonly Contender[], signal: AbortSignal): Promise<boolean> {
  const redis = await startRedis({ private: true });
  const control = new Redis(redis.url, { connectionName: CONTROL_NAME });
  const findings: Finding[] = [];
  try {
    for (const contender of contenders) {
      for (const proof of proofs.filter((one) => asked(one, contender))) {
        signal.throwIfAborted();
        process.stderr.write(`${contender.name}: ${proof.title}\n`);
        await wipe(control);
        const order = { contender: contender.name, proof: proof.name, url: redis.url };
        findings.push({ ...order, verdict: await run(order, signal) });
      }
    }
  } finally {
    control.disconnect();
    await redis.stop();
  }
  process.stdout.write(`${render(contenders, findings)}\n`);
  return findings.every(({ verdict }) => verdict.ok);
}

function asked({ needs }: Proof, { offers }: Contender): boolean {
  return needs === undefined || offers.includes(needs);
}

function run(order: ProofOrder, signal: AbortSignal): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const child = fork(CHILD, [JSON.stringify(order)], {
      stdio: ['ignore', 2, 2, 'ipc'],
      signal,
      killSignal: 'SIGKILL',
    });
    let verdict: Verdict | undefined;
    const late = setTimeout(() => {
      verdict = { ok: false, why: `no answer within ${DEADLINE_MS / 1000} s` };
      child.kill('SIGKILL');
    }, DEADLINE_MS);
    child.on('message', (message: Verdict) => (verdict ??= message));
    child.on('error', reject);
    child.on('exit', (code, killedBy) => {
      clearTimeout(late);
      resolve(verdict ?? { ok: false, why: `the process ended with ${killedBy ?? `code ${code}`}` });
    });
  });
}

function render(contenders: readonly Contender[], findings: readonly Finding[]): string {
  const verdictOf = (proof: Proof, { name }: Contender): Verdict | undefined =>
    findings.find((one) => one.proof === proof.name && one.contender === name)?.verdict;
  const grid = new Table({
    head: ['', ...contenders.map(({ name }) => name)],
    style: { head: [], border: [], compact: true },
  });
  for (const proof of proofs) {
    grid.push([proof.title, ...contenders.map((contender) => mark(verdictOf(proof, contender)))]);
  }
  const failures = findings.flatMap(({ contender, proof, verdict }) =>
    verdict.ok ? [] : [`FAILED ${proof} · ${contender}: ${verdict.why}`],
  );
  return [grid.toString(), '–: not offered', ...failures].join('\n');
}

function mark(verdict: Verdict | undefined): string {
  if (verdict === undefined) return '–';
  return verdict.ok ? 'yes' : 'FAILED';
}
