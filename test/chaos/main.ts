import { HELP, UsageError, readOptions } from './options.js';
import { verdict } from './report.js';
import { run } from './run.js';

const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => interrupt.abort(new Error('interrupted')));
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) process.stdout.write(HELP);
  else {
    process.stdout.write(`seed ${options.seed}\n`);
    const result = await run(options, interrupt.signal);
    process.stdout.write(verdict(result));
    process.exitCode = result.violations.length === 0 ? 0 : 1;
  }
} catch (error) {
  if (error instanceof UsageError) process.stderr.write(`${error.message}\n\n${HELP}`);
  else if (interrupt.signal.aborted) process.stderr.write('interrupted\n');
  else process.stderr.write(`${String((error as Error).stack)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 130;
}
