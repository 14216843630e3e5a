import { GodwitError, InvalidOptionError } from '../errors.js';
import { MAX_DURATION_MS, parseDuration } from '../job/duration.js';
import { pathText, type Path } from '../job/text.js';
import { fieldsOf, hasFields, unknownField } from '../job/fields.js';

/** Called for every fault: throws if the first one ends the call, or collects all. */
export type Report = (fault: GodwitError) => void;

/** Reads one value: returns the checked value, or `undefined` after calling `report`. */
export type Rule<T> = (value: unknown, path: string, report: Report) => T | undefined;

const UNREADABLE = 'something that can be read';

/** A `report` that throws at the first fault. */
export const refuse: Report = (fault) => {
  throw fault;
};

/**
 * Runs a check to its end and returns all faults as sentences. The value is only usable if there are none.
 *
 * @example
 * const { value, faults } = collectFaults((report) => resolveModuleOptions(options, report));
 */
export function collectFaults<T>(check: (report: Report) => T): {
  readonly value: T;
  readonly faults: readonly string[];
} {
  const faults: string[] = [];
  const value = check((fault) => faults.push(fault.message));
  return { value, faults };
}

export function integer(min: number, max: number): Rule<number> {
  const phrase = `an integer from ${min} to ${max}`;
  return (value, path, report) => {
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    return fail(path, phrase, value, report);
  };
}

/** A duration between two numbers of ms, as ms. */
export function duration(min = 0, max = MAX_DURATION_MS): Rule<number> {
  const parse = rule(parseDuration);
  const phrase = `a duration from ${min} ms to ${max} ms`;
  return (value, path, report) => {
    const ms = parse(value, path, report);
    return ms === undefined || (ms >= min && ms <= max) ? ms : fail(path, phrase, value, report);
  };
}

export const boolean: Rule<boolean> = (value, path, report) =>
  typeof value === 'boolean' ? value : fail(path, 'true or false', value, report);

export function oneOf<const T extends string>(...words: readonly T[]): Rule<T> {
  const phrase = (words.length > 1 ? 'one of ' : '') + words.map((word) => `'${word}'`).join(', ');
  return (value, path, report) =>
    words.includes(value as T) ? (value as T) : fail(path, phrase, value, report);
}

/** A boolean, or an object that the other rule reads. */
export function orBoolean<T>(read: Rule<T>): Rule<T | boolean> {
  return (value, path, report) => {
    if (typeof value === 'boolean') return value;
    if (typeof value === 'object' && value !== null) return read(value, path, report);
    return fail(path, 'true, false or an object', value, report);
  };
}

/** A function, which is not called here, or what the other rule accepts. */
export function orFunction<T, F extends (...args: never[]) => unknown>(read: Rule<T>): Rule<T | F> {
  return (value, path, report) => (typeof value === 'function' ? (value as F) : read(value, path, report));
}

/** A list of these words; each may occur once. */
export function someOf<const T extends string>(...words: readonly T[]): Rule<readonly T[]> {
  const phrase = `a list of ${words.map((word) => `'${word}'`).join(', ')}`;
  return (value, path, report) => {
    const list = readable(value, path, () => (Array.isArray(value) ? [...(value as T[])] : null));
    const isGood = list?.every((word) => words.includes(word)) && new Set(list).size === list.length;
    return isGood ? list! : fail(path, phrase, value, report);
  };
}

/** Creates a rule from a function that throws for an invalid value. */
export function rule<T>(read: (value: unknown, path: string) => T): Rule<T> {
  return (value, path, report) => {
    try {
      return read(value, path);
    } catch (error) {
      if (!(error instanceof GodwitError)) throw error;
      report(error);
      return undefined;
    }
  };
}

/** A field of a shape: its rule, and its name after checking (often with the unit). */
export interface Field<As extends string, T> {
  readonly as: As;
  readonly rule: Rule<T>;
  /** Set if `undefined` is refused: what the call does if the field is left out. */
  readonly leftOut?: string;
}

/** The name of a field whose rule returns several checked fields. */
const SEVERAL = '...';

/** A field that becomes several fields after checking. */
export function fields<T extends object>(checked: Rule<T>): Field<typeof SEVERAL, T> {
  return { as: SEVERAL, rule: checked };
}

export function field<As extends string, T>(as: As, checked: Rule<T>): Field<As, T> {
  return { as, rule: checked };
}

/**
 * The same fields, for a call that changes what they select. Without a field it changes more, so a field that is given as `undefined`
 * is refused: it is often a mistake, such as `cancel({ name: job.nmae })`.
 *
 * @param leftOut why a caller would leave the field out, as a phrase.
 */
export function selecting<Fields extends Record<string, Field<string, any>>>(
  fields: Fields,
  leftOut = 'to match all jobs',
): Fields {
  const each = Object.entries(fields).map(([name, one]) => [name, { ...one, leftOut }]);
  return Object.fromEntries(each) as Fields;
}

/** The result of a shape: only the fields that were given, under the checked names. */
export type Shaped<Fields extends Record<string, Field<string, any>>> = {
  -readonly [K in keyof Fields as Exclude<Fields[K]['as'], typeof SEVERAL>]?: ValueOf<Fields[K]>;
} & Together<
  { [K in keyof Fields]: Fields[K]['as'] extends typeof SEVERAL ? ValueOf<Fields[K]> : never }[keyof Fields]
>;

type ValueOf<F> = F extends Field<string, infer T> ? T : never;
/** Of a union, the type that has the fields of all its members. */
type Together<T> = (T extends unknown ? (of: T) => void : never) extends (of: infer All) => void
  ? All
  : never;

/**
 * Reads an object with these fields and no others. It returns a new object with known keys only, so `__proto__` and `constructor` are
 * dropped; `undefined` counts as absent, except in fields that select.
 *
 * @param words advice for words of BullMQ that mean something else in this place than elsewhere.
 */
export function shape<Fields extends Record<string, Field<string, any>>>(
  fields: Fields,
  words?: Readonly<Record<string, string>>,
): Rule<Shaped<Fields>> {
  const known = Object.keys(fields);
  return (value, path, report) => {
    const entries = readEntries(value, path, known, report);
    if (entries === undefined) return undefined;
    const shaped: Record<string, unknown> = {};
    for (const [key, given] of entries) {
      if (!Object.hasOwn(fields, key)) {
        report(unknownField(path, key, known, words));
        continue;
      }
      const { as, rule: check, leftOut } = fields[key]!;
      if (given === undefined) {
        if (leftOut !== undefined) fail(`${path}.${key}`, `a value, or left out ${leftOut}`, given, report);
        continue;
      }
      const checked = readField(check, given, `${path}.${key}`, report);
      if (checked === undefined) continue;
      if (as === SEVERAL) Object.assign(shaped, checked);
      else shaped[as] = checked;
    }
    return shaped as Shaped<Fields>;
  };
}

/** Reads a value that may throw when it is accessed, such as an object with a getter or a revoked proxy. */
function readField<T>(check: Rule<T>, given: unknown, path: string, report: Report): T | undefined {
  try {
    return check(given, path, report);
  } catch (error) {
    if (error instanceof GodwitError) throw error;
    return fail(path, UNREADABLE, given, report);
  }
}

/** A shape in which these fields must be given. A missing field is reported by its own rule. */
export function shapeWith<
  Fields extends Record<string, Field<string, any>>,
  Name extends keyof Fields & string,
>(
  fields: Fields,
  ...names: readonly Name[]
): Rule<Shaped<Fields> & Required<Pick<Shaped<Fields>, Fields[Name]['as'] & keyof Shaped<Fields>>>> {
  const read = shape(fields);
  return (value, path, report) => {
    const shaped = read(value, path, report);
    if (shaped === undefined) return undefined;
    const missing = names.filter((name) => !(fields[name]!.as in shaped));
    for (const name of missing) {
      // A field that was given and refused is reported already.
      const isGiven = (value as Record<string, unknown>)[name] !== undefined;
      if (!isGiven) fields[name]!.rule(undefined, `${path}.${name}`, report);
    }
    return missing.length === 0 ? (shaped as never) : undefined;
  };
}

/** The fields of an object of options by name, each read once: see `fieldsOf`. */
function readEntries(
  value: unknown,
  path: string,
  known: readonly string[],
  report: Report,
): [string, unknown][] | undefined {
  let phrase = 'an object';
  try {
    if (hasFields(value)) return fieldsOf(value, known);
  } catch {
    phrase = UNREADABLE;
  }
  return fail(path, phrase, value, report);
}

/**
 * A plain copy of an object of options, including fields that its class defines. The copy keeps unknown fields, so that its
 * reader can refuse them.
 *
 * @throws {InvalidOptionError}
 */
export function copyFields(value: unknown, path: string, known: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(readEntries(value, path, known, refuse)!);
}

/** The items of a list, or a single item as a list. */
export function oneOrSeveral(value: unknown, path: string): readonly unknown[] {
  return readable(value, path, () => (Array.isArray(value) ? [...(value as unknown[])] : [value]));
}

/**
 * Returns the result of `read`, which accesses fields of the caller's object: a getter or a revoked proxy may throw.
 *
 * @throws {InvalidOptionError} if `read` throws.
 */
export function readable<T>(value: unknown, path: Path, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof GodwitError) throw error;
    throw new InvalidOptionError(pathText(path), UNREADABLE, value);
  }
}

function fail(path: string, phrase: string, value: unknown, report: Report): undefined {
  report(new InvalidOptionError(path, phrase, value));
  return undefined;
}
