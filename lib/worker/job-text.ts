/** A job in a sentence of the log. Ids are quoted as JSON: they may hold quotes or anything else that reads like text of ours. */
export function jobText(queue: string, id: string): string {
  return `job ${JSON.stringify(id)} of queue '${queue}'`;
}
