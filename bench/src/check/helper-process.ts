import { contenders } from '../contenders/index.js';
import { QUEUE } from '../scenario.js';
import type { HelperMessage, HelperOrder } from './helper.js';

// This worker ends with the proof.
process.on('disconnect', () => process.exit(1));

const { contender, url, concurrency, leaseMs, does } = JSON.parse(process.argv[2]!) as HelperOrder;
const system = await contenders[contender]!();
await system.open({
  url,
  queues: [QUEUE],
  leaseMs,
  work: {
    concurrency,
    handle(data) {
      say({ kind: 'got', data });
      return does === 'hang' ? new Promise(() => {}) : data.n;
    },
  },
});
say({ kind: 'open' });

function say(message: HelperMessage): void {
  process.send!(message);
}
