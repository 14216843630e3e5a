import { Redis } from 'ioredis';
import { contenders } from '../contenders/index.js';
import { CONTROL_NAME } from '../measure/connections.js';
import type { ProofOrder, Verdict } from './proof.js';
import { proofs } from './proofs.js';

process.on('disconnect', () => process.exit(1));

const { contender, proof: name, url } = JSON.parse(process.argv[2]!) as ProofOrder;
const proof = proofs.find((one) => one.name === name)!;
const control = new Redis(url, { connectionName: CONTROL_NAME });

let verdict: Verdict = { ok: true };
try {
  await proof.prove({ contender: await contenders[contender]!(), url, control });
} catch (error) {
  verdict = { ok: false, why: error instanceof Error ? error.message : String(error) };
}
process.send!(verdict, () => process.exit(0));
