import { setTimeout } from 'node:timers/promises';
import { InvalidOptionError } from '../../errors.js';
import { createInspector } from '../inspector.js';
import { quoted } from '../../job/text.js';
import { checkUrl, DEFAULT_CONNECTION } from '../../options/connection.js';
import { VERSION } from '../../worker/registrar.js';
import { acl } from './acl.js';
import { actions, actorOf } from './actions.js';
import { COMPLETION_HELP, completionScript } from './completion.js';
import { checkDuration, Printer, stopped, type Command } from './context.js';
import { failureOf, STOPPED, StoppedError } from './failure.js';
import { DISPATCH_HELP, readDispatchOptions } from './dispatch-options.js';
import { runDispatch } from './dispatch.js';
import { JOB_COMMANDS } from './job-commands.js';
import { LIMIT_COMMANDS } from './limit-commands.js';
import { migrate } from './migrate.js';
import { standardOutput, type Output } from './output.js';
import { QUEUE_COMMANDS } from './queue-commands.js';
import { readArguments, type OptionForm } from './read-arguments.js';
import { serve } from './serve.js';
import { didYouMean, UsageError } from './usage-error.js';
import { WATCH_COMMANDS } from './watch-commands.js';

const COMMANDS: readonly Command[] = [
  ...QUEUE_COMMANDS,
  ...JOB_COMMANDS,
  ...LIMIT_COMMANDS,
  ...WATCH_COMMANDS,
  actions,
  serve,
  migrate,
  acl,
];

const NAMES = [...COMMANDS.map(({ name }) => name), 'dispatch', 'completion', 'version'];

/** Options of every command that uses Redis. */
const GLOBAL = {
  url: {
    type: 'string',
    short: 'u',
    about: `URL of Redis (default: $GODWIT_URL, $REDIS_URL, ${DEFAULT_CONNECTION})`,
  },
  prefix: { type: 'string', about: 'prefix of the keys (default: $GODWIT_PREFIX, godwit)' },
  cluster: { type: 'boolean', about: 'the URL names a node of a Redis Cluster' },
  json: { type: 'boolean', about: 'print JSON' },
  yes: { type: 'boolean', short: 'y', about: 'do not ask before a change' },
  quiet: { type: 'boolean', short: 'q', about: 'print only errors and tables' },
  'no-color': { type: 'boolean', about: 'no colours, like $NO_COLOR' },
  help: { type: 'boolean', short: 'h', about: 'print this text' },
} as const;

/** Runs the command line; returns the exit code. */
export async function main(args: string[]): Promise<number> {
  const output = standardOutput();
  // This does not parse the arguments, because errors about wrong arguments are also printed as JSON.
  output.isJson = args.includes('--json');
  try {
    return await run(commandFirst(args), output);
  } catch (error) {
    const failure = failureOf(error, args.includes('--cluster'));
    if (!failure) throw error;
    const { code, message, usage, exitCode } = failure;
    output.complain(code, message, usage);
    return exitCode;
  }
}

/**
 * The error with the name of the option as a person types it: `--older-than` instead of `dead.list().olderThan`. A field of `--options`
 * keeps its own name, because that is typed too.
 */
function asTyped(error: InvalidOptionError, { options = {} }: Command): InvalidOptionError {
  const { path, rule, received, message } = error;
  const names = path
    .split('.')
    .map((part) => part.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
  const at = names.findLastIndex((one) => Object.hasOwn(options, one));
  if (at === -1 || !message.startsWith(path)) return error;
  const inner = names[at] === 'options' ? path.split('.').slice(at + 1) : [];
  const typed = [`--${names[at]!}`, ...inner].join('.');
  return new InvalidOptionError(path, rule, received, `${typed}${message.slice(path.length)}`);
}

/** Options may also be before the command, so they are moved behind it. */
function commandFirst(args: readonly string[]): string[] {
  let at = 0;
  while (args[at]?.startsWith('-')) {
    const word = args[at]!;
    const ofText = Object.entries(GLOBAL).some(
      ([name, form]) =>
        form.type === 'string' && (word === `--${name}` || ('short' in form && word === `-${form.short}`)),
    );
    at += ofText ? 2 : 1;
  }
  return at < args.length ? [args[at]!, ...args.slice(0, at), ...args.slice(at + 1)] : [...args];
}

async function run([name, ...args]: string[], output: Output): Promise<number> {
  switch (name) {
    case 'dispatch':
      return dispatch(args, output);
    case 'completion':
      output.print(
        args.some((one) => one === '--help' || one === '-h')
          ? COMPLETION_HELP
          : completionScript(args[0], NAMES),
      );
      return 0;
    case '-h':
    case '--help':
    case 'help':
      output.print(help());
      return 0;
    case '--version':
    case 'version':
      return version(args, output);
    case undefined:
      throw new UsageError('the command is missing', help());
    default:
  }
  const command = COMMANDS.find((one) => one.name === name);
  if (!command && name.startsWith('-')) {
    const { values } = readArguments([name, ...args], GLOBAL, 'godwit --help lists the options');
    if (values.help !== true) throw new UsageError('the command is missing', help());
    output.print(help());
    return 0;
  }
  if (!command)
    throw new UsageError(
      `unknown command ${name.slice(0, 100)}${didYouMean(name, NAMES)}`,
      'godwit --help lists the commands',
    );
  return runCommand(command, args, output);
}

function version(args: readonly string[], output: Output): number {
  const { values, words } = readArguments(args, GLOBAL, 'godwit version prints the version of the package');
  if (words.length > 0) throw new UsageError(`unexpected argument ${quoted(words[0]!.slice(0, 100))}`, '');
  output.print(values.json === true ? `${JSON.stringify({ version: VERSION })}\n` : `${VERSION}\n`);
  return 0;
}

async function runCommand(command: Command, args: string[], output: Output): Promise<number> {
  const options: Readonly<Record<string, OptionForm>> = { ...GLOBAL, ...command.options };
  const { values, words } = readArguments(args, options, hintOf(command));
  if (values['help'] === true) {
    output.print(helpOf(command));
    return 0;
  }
  const [least, most] = command.words;
  if (words.length < least || words.length > most)
    throw new UsageError(
      words.length < least
        ? `an argument is missing: godwit ${command.name} ${command.usage}`
        : `unexpected argument ${quoted(words[most]!.slice(0, 100))}`,
      hintOf(command),
    );
  const { env } = process;
  const text = (key: string) => values[key] as string | undefined;
  const url = checkUrl(text('url') ?? env['GODWIT_URL'] ?? env['REDIS_URL'] ?? DEFAULT_CONNECTION, '--url');
  const prefix = text('prefix') ?? env['GODWIT_PREFIX'] ?? 'godwit';
  const { stop, forget } = stopping(output);
  const actor = actorOf();
  const inspector = createInspector({
    connection: values['cluster'] === true ? { cluster: [url] } : url,
    prefix,
    actor,
  });
  const print = new Printer(
    output,
    screenOf(values),
    values['json'] === true,
    values['yes'] === true,
    values['quiet'] === true,
  );
  try {
    for (const [name, { isDuration }] of Object.entries(command.options ?? {}))
      if (isDuration && text(name) !== undefined) checkDuration(text(name)!, `--${name}`);
    const { signal } = stop;
    const ended = command.run({ words, values, inspector, actor, print, url, prefix, signal });
    return await Promise.race([ended, longAfter(signal)]);
  } catch (error) {
    const isStopped = stop.signal.aborted && error === stop.signal.reason;
    if (isStopped || error instanceof StoppedError) return STOPPED;
    if (error instanceof UsageError)
      throw new UsageError(error.message, error.usage === '' ? hintOf(command) : error.usage);
    throw error instanceof InvalidOptionError ? asTyped(error, command) : error;
  } finally {
    await inspector.close();
    forget();
  }
}

/**
 * A controller that aborts at SIGINT and SIGTERM, and when the reader of the output is gone. `forget` removes its listeners,
 * unless it has aborted: a second signal must not kill the process before it exits with its code.
 */
function stopping(output: Output): { readonly stop: AbortController; readonly forget: () => void } {
  const stop = new AbortController();
  const abort = () => {
    stop.abort();
    output.stop();
  };
  const signals = ['SIGINT', 'SIGTERM'] as const;
  for (const signal of signals) process.on(signal, abort);
  const remove = output.onClosed(abort);
  const forget = () => {
    if (stop.signal.aborted) return;
    for (const signal of signals) process.off(signal, abort);
    remove();
  };
  return { stop, forget };
}

/** How long a command may take to end by itself after a signal. */
const GRACE_MS = 3_000;

async function longAfter(signal: AbortSignal): Promise<number> {
  await stopped(signal);
  await setTimeout(GRACE_MS, undefined, { ref: false });
  return STOPPED;
}

/**
 * A pipe has no width, so lines are not cut, unless `COLUMNS` is set. A terminal that nobody gave a size, such as the one of a
 * container, has 0 columns.
 */
function screenOf(values: Readonly<Record<string, unknown>>) {
  const { env, stdout } = process;
  const columns = Number(env['COLUMNS']);
  const given = columns > 0 ? columns : undefined;
  const isForced = (env['FORCE_COLOR'] ?? '0') !== '0';
  const isOff = values['no-color'] === true || (env['NO_COLOR'] ?? '') !== '';
  return {
    get width() {
      return stdout.isTTY ? stdout.columns || given || 80 : given;
    },
    color: !isOff && (isForced || (stdout.isTTY && env['TERM'] !== 'dumb')),
  };
}

function help(): string {
  const rows: [string, string][] = [
    ...COMMANDS.map(({ name, usage, about }): [string, string] => [`${name} ${usage}`.trimEnd(), about]),
    [
      'dispatch',
      'moves due tasks from a sorted set to a list, for queues that other programs fill and empty',
    ],
    ['completion <bash|zsh|fish>', 'prints a script for the shell'],
    ['version', 'the version of this package'],
  ];
  return `Usage: godwit <command> [options]

Commands:
${list(rows)}

Options of all commands but dispatch:
${optionList(GLOBAL)}

Exit codes: 0 done, 1 failed, 2 wrong use, 3 not there, 4 unhealthy, 130 stopped.
`;
}

/** Printed after a message about wrong arguments. The whole help would move the message out of sight. */
function hintOf({ name }: Command): string {
  return `see godwit ${name} --help`;
}

function helpOf({ name, usage, about, options = {} }: Command): string {
  const own = Object.keys(options).length > 0 ? `Options:\n${optionList(options)}\n\n` : '';
  return `Usage: godwit ${`${name} ${usage}`.trimEnd()} [options]

${about[0]!.toUpperCase()}${about.slice(1)}.

${own}Options of all commands:
${optionList(GLOBAL)}
`;
}

function optionList(options: Command['options'] & {}): string {
  return list(
    Object.entries(options).map(([name, { type, short, about }]): [string, string] => [
      `${short ? `-${short}, ` : '    '}--${name}${type === 'string' ? ' <value>' : ''}`,
      about,
    ]),
  );
}

function list(rows: readonly (readonly [string, string])[]): string {
  const width = Math.min(42, Math.max(...rows.map(([left]) => left.length)));
  return rows
    .map(([left, right]) =>
      left.length > width
        ? `  ${left}\n  ${' '.repeat(width)}  ${right}`
        : `  ${left.padEnd(width)}  ${right}`,
    )
    .join('\n');
}

async function dispatch(args: string[], output: Output): Promise<number> {
  const options = readDispatchOptions(args);
  if (options === 'help') {
    output.print(DISPATCH_HELP);
    return 0;
  }
  const { stop, forget } = stopping(output);
  try {
    return await runDispatch(options, output, stop.signal);
  } finally {
    forget();
  }
}
