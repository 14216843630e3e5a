import { quoted } from '../job/text.js';
import { DISPATCH_HELP, readDispatchOptions, UsageError } from './dispatch-options.js';
import { runDispatch } from './dispatch.js';
import { Output } from './output.js';

const HELP = `Usage: godwit <command> [options]

Commands:
  dispatch     moves due tasks from a sorted set to a list, for queues that other programs fill and empty

Options:
  -h, --help   this text; after a command, its options
  --version    the version of this package
`;

/** Runs the command line; returns the exit code. */
export async function main(args: string[]): Promise<number> {
  const output = new Output();
  try {
    return await run(args, output);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    output.printError(`godwit: ${error.message}`, error.usage.trimEnd());
    return 2;
  }
}

async function run([command, ...args]: string[], output: Output): Promise<number> {
  switch (command) {
    case 'dispatch':
      return dispatch(args, output);
    case '-h':
    case '--help':
      output.print(HELP);
      return 0;
    case '--version':
      output.print(`${versionOfPackage()}\n`);
      return 0;
    case undefined:
      throw new UsageError('there is no command', HELP);
    default:
      throw new UsageError(`there is no command ${quoted(command.slice(0, 100))}`, HELP);
  }
}

async function dispatch(args: string[], output: Output): Promise<number> {
  const options = readDispatchOptions(args);
  if (options === 'help') {
    output.print(DISPATCH_HELP);
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
  output.onClosed(() => stop.abort());
  return runDispatch(options, output, stop.signal);
}

function versionOfPackage(): string {
  return (require('../../package.json') as { version: string }).version;
}
