interface Together {
  /** From the last job of the warm-up to the last job of all, in whichever process. */
  readonly elapsedMs: number;
  /** The largest share of jobs that one process handled. */
  readonly busiest: number;
}

/**
 * What several processes did together, from when each handled which job (0 where it did not). Throws unless each job was handled
 * just once.
 */
export function together(handledAt: readonly Float64Array[], warmUp: number): Together {
  const jobs = handledAt[0]!.length;
  for (let n = 0; n < jobs; n++) {
    const runs = handledAt.filter((at) => at[n]! > 0).length;
    if (runs !== 1) throw new Error(`job ${n} was handled ${runs} times`);
  }
  const times = handledAt.map((at) => Array.from(at).filter((t) => t > 0));
  const all = Float64Array.from(times.flat()).toSorted();
  const from = all[warmUp - 1]!;
  const measured = times.map((at) => at.filter((t) => t > from).length);
  return { elapsedMs: all.at(-1)! - from, busiest: Math.max(...measured) / (jobs - warmUp) };
}
