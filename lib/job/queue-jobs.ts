import type { AnyDefinition, InputOf, JobDefinition, ResultOf } from './define-job.js';

/** The jobs of a queue without types: any name, any data. */
type AnyJobs = Readonly<Record<string, unknown>>;

type IsAny<T> = 0 extends 1 & T ? true : false;
type IsDefinition<T> = IsAny<T> extends true ? false : [T] extends [AnyDefinition] ? true : false;
/** `never` if the compiler only knows that the name is a string. */
type KnownName<D> =
  D extends JobDefinition<any, any, any, infer Name> ? (string extends Name ? never : Name) : never;

/** The jobs by name, from definitions or from types of data. */
type Named<Jobs> =
  IsAny<Jobs> extends true
    ? AnyJobs
    : Jobs extends readonly unknown[]
      ? { readonly [D in Jobs[number] as KnownName<D>]: D }
      : {
          readonly [
            Key in keyof Jobs as IsDefinition<Jobs[Key]> extends true ? KnownName<Jobs[Key]> : Key & string
          ]: Jobs[Key];
        };

type OnlyDefinition<Entry> = IsDefinition<Entry> extends true ? Entry : never;
/** The listed definitions. */
type Listed<Jobs> = Jobs extends readonly unknown[]
  ? Jobs[number]
  : { [Key in keyof Jobs]: OnlyDefinition<Jobs[Key]> }[keyof Jobs];

type Input<Entry> =
  IsDefinition<Entry> extends true ? (Entry extends AnyDefinition ? InputOf<Entry> : never) : Entry;
type Result<Entry> =
  IsDefinition<Entry> extends true ? (Entry extends AnyDefinition ? ResultOf<Entry> : never) : unknown;

/** The names of the jobs of `Queue<Jobs>`; `string` if the queue has no types. */
export type NameIn<Jobs> = keyof Named<Jobs> & string;

/** The data of the jobs of `Queue<Jobs>` with this name, as the producer passes it. */
export type DataIn<Jobs, Name extends NameIn<Jobs> = NameIn<Jobs>> = Input<Named<Jobs>[Name]>;

/** The definitions that a `Queue<Jobs>` accepts: the listed ones, and others for the names in `Jobs`. */
export type DefinitionIn<Jobs> =
  string extends NameIn<Jobs>
    ? AnyDefinition
    : Extract<Listed<Jobs>, AnyDefinition> | JobDefinition<any, any, any, NameIn<Jobs>>;

/** The first argument of `add` of a `Queue<Jobs>`: a name or a definition. */
export type JobIn<Jobs> = NameIn<Jobs> | DefinitionIn<Jobs>;

/** The data that belongs to this name or definition. */
export type InputIn<Jobs, Job> = Job extends AnyDefinition
  ? InputOf<Job>
  : Job extends NameIn<Jobs>
    ? DataIn<Jobs, Job>
    : never;

/** The result of `addAndWait` for this name or definition. */
export type ResultIn<Jobs, Job> = Job extends AnyDefinition
  ? ResultOf<Job>
  : Job extends NameIn<Jobs>
    ? Result<Named<Jobs>[Job]>
    : never;
