import { parseArgs } from 'node:util';
import { quoted } from '../../job/text.js';
import { didYouMean, UsageError } from './usage-error.js';

/** How the command line writes an option. */
export interface OptionForm {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
}

/** Options by their names, and the other arguments. */
interface Arguments<Options> {
  readonly values: {
    readonly [Name in keyof Options]?: Options[Name] extends { readonly type: 'boolean' }
      ? boolean
      : Options[Name] extends { readonly type: 'string' }
        ? string
        : string | boolean;
  };
  readonly words: readonly string[];
}

/**
 * Reads arguments. Node's own texts are about the code of the program, so the checks of `parseArgs` are not used.
 *
 * @param usage of the `UsageError`.
 * @throws {UsageError}
 */
export function readArguments<Options extends Readonly<Record<string, OptionForm>>>(
  args: readonly string[],
  options: Options,
  usage: string,
): Arguments<Options> {
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(options).map(([name, { type, short }]) => [name, short ? { type, short } : { type }]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    const fault = token.kind === 'option' ? faultOf(token, options) : undefined;
    if (fault !== undefined) throw new UsageError(fault, usage);
  }
  return { values: values as Arguments<Options>['values'], words: positionals };
}

interface OptionToken {
  readonly name: string;
  /** As it was written: `--name` or `-n`. */
  readonly rawName: string;
  readonly value: string | undefined;
  /** Whether the value was written as `--name=value`. */
  readonly inlineValue: boolean | undefined;
}

function faultOf(
  { name, rawName, value, inlineValue }: OptionToken,
  options: Readonly<Record<string, OptionForm>>,
): string | undefined {
  const form = Object.hasOwn(options, name) ? options[name] : undefined;
  if (form === undefined) {
    const near = rawName.startsWith('--') ? didYouMean(name, Object.keys(options), '--') : '';
    return `unknown option ${rawName.slice(0, 100)}${near}`;
  }
  if (form.type === 'boolean') return value === undefined ? undefined : `${rawName} takes no value`;
  if (value === undefined) return `${rawName} needs a value`;
  // The value is missing, and this is the next option. A single - means standard input.
  if (!inlineValue && value.length > 1 && value.startsWith('-'))
    return `${rawName} needs a value, got ${quoted(value.slice(0, 100))}; write a value that begins with - as --${name}=${value.slice(0, 100)}`;
  return undefined;
}
