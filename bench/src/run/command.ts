import { UsageError } from '../flags.js';

/** Runs the program of a command and sets the exit code: 2 for wrong flags, 130 when interrupted. */
export async function runCommand<Plan>({
  read,
  help,
  run,
}: {
  read: (argv: readonly string[]) => Plan | undefined;
  help: string;
  run: (plan: Plan, signal: AbortSignal) => Promise<number>;
}): Promise<void> {
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort(new Error('interrupted')));
  process.once('SIGTERM', () => interrupt.abort(new Error('interrupted')));
  try {
    const plan = read(process.argv.slice(2));
    if (plan === undefined) process.stdout.write(help);
    else process.exitCode = await run(plan, interrupt.signal);
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n\n${help}`);
      process.exitCode = 2;
    } else if (interrupt.signal.aborted) {
      process.stderr.write('\ninterrupted\n');
      process.exitCode = 130;
    } else {
      throw error;
    }
  }
}
