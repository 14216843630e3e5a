/** A line that a handler wrote with `job.log`. */
export interface LogLine {
  /** The attempt that wrote it, from 1. Null if the line was stored without one, by another version of Godwit. */
  readonly attempt: number | null;
  /** At most 2,000 characters, without line breaks and control characters. */
  readonly text: string;
}

/** The lines of one attempt. */
interface AttemptLog {
  readonly attempt: number | null;
  readonly lines: readonly string[];
}

/** Groups the lines of a log by attempt, in their order. */
export function logByAttempt(logs: readonly LogLine[]): AttemptLog[] {
  const groups: { attempt: number | null; lines: string[] }[] = [];
  for (const { attempt, text } of logs) {
    const last = groups.at(-1);
    if (last?.attempt === attempt) last.lines.push(text);
    else groups.push({ attempt, lines: [text] });
  }
  return groups;
}
