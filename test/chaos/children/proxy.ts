import { Cut } from '../../support/cut.js';
import { freePort } from '../../../tools/free-port.mjs';
import type { LineAct } from '../plan.js';
import { onTold, plan, say, tellFigures } from './child.js';

/** One proxied connection to Redis per process, so that a network fault hits one process. */
const lines: Cut[] = [];
for (let i = 0; i < plan.proxy!.lines; i++) {
  const line = new Cut(new URL(plan.url), await freePort());
  await line.listen();
  lines.push(line);
}

onTold((told) => act(told as LineAct));
tellFigures(() => ({ cuts: lines.reduce((sum, { counters }) => sum + counters.cuts, 0) }));
say({ say: 'ready', ports: lines.map(({ port }) => port) });

async function act(told: LineAct): Promise<void> {
  const line = lines[told.line]!;
  switch (told.do) {
    case 'cut':
      await line.cutAfterBytes(told.direction, told.bytes).done;
      return say({ say: 'done' });
    case 'delay':
      return line.delay(told.ms);
    case 'bandwidth':
      return line.throttle({ up: told.bytesPerSecond, down: told.bytesPerSecond });
    case 'half-open': {
      const { connections } = line;
      const chosen = connections[Math.floor(told.share * connections.length)];
      // A share of 1 means all.
      if (chosen) chosen.blackhole();
      else line.blackhole();
      return;
    }
    case 'heal':
      return line.heal();
  }
}
