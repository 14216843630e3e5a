import { quoted } from '../job/text.js';

/** A job in a sentence of the log. Ids are quoted: they may hold quotes or anything else that reads like text of ours. */
export function jobText(queue: string, id: string): string {
  return `job ${quoted(id)} of queue '${queue}'`;
}
