import type { Lab } from '../scenario.js';
import { connections } from './connections.js';
import { usedMemory } from './redis-info.js';

/** Memory of Redis with nobody connected: socket buffers would count as memory of jobs. */
export async function memoryAlone(lab: Lab): Promise<number> {
  const open = await connections(lab.control);
  if (open > 0) throw new Error(`${open} connections are still open after close()`);
  return usedMemory(lab.control);
}
