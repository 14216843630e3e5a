import type { AddArgs, Call, RunArgs, RunValue } from './record.js';

/**
 * What one id may be, and what each call may make of it: the promise of the store, written down a second time, for one id and
 * as simply as possible. A state is one of
 *
 *     absent | waiting tag | active tag run flag | completed tag | dead tag
 *
 * where the flag says that a running job was cancelled.
 */
export type State = string;

/** Something that happened to an id at a moment between `start` and `end`. */
export interface Step {
  readonly start: number;
  /** Infinity: at any time after its start. */
  readonly end: number;
  /** Whether it may not have happened at all. */
  readonly isOptional: boolean;
  /** The states that can follow this state if the call gave its answer; none if that answer was impossible. */
  readonly apply: (state: State) => readonly State[];
  readonly text: string;
}

export const ABSENT: State = 'absent';
const SAME = (state: State): readonly State[] => [state];
const NONE: readonly State[] = [];

const phaseOf = (state: State) => state.split(' ')[0]!;
const tagOf = (state: State) => state.split(' ')[1];
const runOf = (state: State) => state.split(' ')[2];
const isCancelled = (state: State) => state.split(' ')[3] === 'cancelled';
const waiting = (tag: string) => `waiting ${tag}`;
const active = (tag: string, run: string, cancelled = false) =>
  `active ${tag} ${run} ${cancelled ? 'cancelled' : '-'}`;

/** The states that an id can reach without a call, by workers and the store. Includes this state. */
export function silently(state: State, adds: ReadonlyMap<string, AddArgs>): readonly State[] {
  const found = [state];
  for (let i = 0; i < found.length; i++) {
    for (const next of movesOf(found[i]!, adds)) if (!found.includes(next)) found.push(next);
  }
  return found;
}

function movesOf(state: State, adds: ReadonlyMap<string, AddArgs>): readonly State[] {
  const tag = tagOf(state) ?? '';
  const add = adds.get(tag);
  switch (phaseOf(state)) {
    case 'waiting':
      // A claim that nobody saw: the job was given back, or its worker died.
      return [active(tag, '?'), ...(add?.expiresIn === undefined ? [] : [`dead ${tag}`])];
    case 'active':
      // Its worker gave it back, or lost its lease.
      return [isCancelled(state) ? ABSENT : waiting(tag)];
    case 'completed':
      return (add?.retention ?? 0) >= LONG ? NONE : [ABSENT];
    default:
      return NONE;
  }
}

/** A retention that is longer than any run. */
const LONG = 600_000;

/** The possible effects of this call on its id. Undefined if it tells nothing. */
export function stepsOf(call: Call, settled: ReadonlyMap<string, Call>): readonly Step[] {
  if (call.verb === 'run') return stepsOfRun(call, settled);
  const effect = EFFECTS[call.verb];
  // A refused call changes nothing.
  if (!effect || call.outcome === 'error') return [];
  const isOpen = call.outcome === 'indeterminate' || call.end === null;
  const text = `${call.process} ${call.verb} ${isOpen ? '(no answer)' : JSON.stringify(call.value)}`;
  return [
    {
      start: call.start,
      end: isOpen ? Infinity : call.end!,
      isOptional: isOpen,
      apply: isOpen ? effect.open(call) : effect.answered(call),
      text,
    },
  ];
}

type Apply = Step['apply'];
interface Effect {
  readonly answered: (call: Call) => Apply;
  readonly open: (call: Call) => Apply;
}

const drop =
  (...phases: readonly string[]): Apply =>
  (state) =>
    phases.includes(phaseOf(state)) ? [ABSENT] : NONE;
const stays =
  (isSo: (state: State) => boolean): Apply =>
  (state) =>
    isSo(state) ? SAME(state) : NONE;
const isIn =
  (...phases: readonly string[]) =>
  (state: State) =>
    phases.includes(phaseOf(state));

/** The id of a job that has ended can be used again. */
const holdsId = isIn('waiting', 'active');

function addTo(call: Call): Apply {
  const { tag } = call.args as unknown as AddArgs;
  return (state) => (holdsId(state) ? NONE : [waiting(tag)]);
}

const signal: Apply = (state) =>
  phaseOf(state) === 'active' ? [active(tagOf(state)!, runOf(state)!, true)] : NONE;
const retry: Apply = (state) => (phaseOf(state) === 'dead' ? [waiting(tagOf(state)!)] : NONE);

/** The answer of `get`: null, or the state and the tag in the data of the job. */
function seen(value: { state: string; tag: string } | null): Apply {
  if (value === null) return stays((state) => state === ABSENT);
  const phase = value.state === 'delayed' ? 'waiting' : value.state;
  return stays((state) => phaseOf(state) === phase && tagOf(state) === value.tag);
}

const EFFECTS: Partial<Record<Call['verb'], Effect>> = {
  add: {
    answered: (call) => (call.value === 'duplicate' ? stays(holdsId) : addTo(call)),
    open: addTo,
  },
  cancel: {
    answered: ({ value }) => {
      if (value === 'cancelled') return drop('waiting');
      return value === 'signalled' ? signal : stays(isIn('absent', 'completed', 'dead'));
    },
    open: () => (state) => [...drop('waiting')(state), ...signal(state)],
  },
  remove: {
    answered: ({ value }) => {
      if (value === 'removed') return drop('waiting', 'completed', 'dead');
      return stays(isIn(value === 'not-found' ? 'absent' : 'active'));
    },
    open: () => drop('waiting', 'completed', 'dead'),
  },
  clean: {
    answered: () => drop('waiting', 'completed', 'dead'),
    open: () => drop('waiting', 'completed', 'dead'),
  },
  get: { answered: ({ value }) => seen(value as { state: string; tag: string } | null), open: () => SAME },
  retry: {
    answered: ({ value }) => {
      if (value === 'retried') return retry;
      return stays(value === 'not-found' ? isIn('absent') : isIn('waiting', 'active', 'completed'));
    },
    open: () => retry,
  },
  promote: {
    answered: ({ value }) => {
      if (value === 'promoted') return stays(isIn('waiting'));
      return stays(value === 'not-found' ? isIn('absent') : (state) => state !== ABSENT);
    },
    open: () => SAME,
  },
};

/** The job was claimed before the run began; its end may be settled after the run. */
function stepsOfRun(call: Call, settled: ReadonlyMap<string, Call>): readonly Step[] {
  const { tag, run } = call.args as unknown as RunArgs;
  const name = `${call.process}/${run}`;
  const claim: Step = {
    start: -Infinity,
    end: call.start,
    isOptional: false,
    apply: (state) => {
      if (tagOf(state) !== tag) return NONE;
      if (phaseOf(state) === 'waiting') return [active(tag, name)];
      return phaseOf(state) === 'active' && runOf(state) === '?'
        ? [active(tag, name, isCancelled(state))]
        : NONE;
    },
    text: `${name} claims ${tag}`,
  };
  const value = call.value as RunValue | null;
  if (call.end === null || value === null || value.ending === 'given-back') return [claim];
  const answer = settled.get(name);
  if (answer?.value === 'refused') return [claim];
  const isAccepted = answer?.value === 'accepted' && answer.end !== null;
  const settle: Step = {
    start: call.end,
    end: isAccepted ? answer.end! : Infinity,
    isOptional: !isAccepted,
    apply: (state) => {
      if (phaseOf(state) !== 'active' || tagOf(state) !== tag || runOf(state) !== name) return NONE;
      return [endOf(state, value.ending)];
    },
    text: `${name} settles ${tag} as ${value.ending}`,
  };
  return [claim, settle];
}

function endOf(state: State, ending: RunValue['ending']): State {
  const tag = tagOf(state)!;
  if (ending === 'returned') return `completed ${tag}`;
  if (isCancelled(state)) return ABSENT;
  return ending === 'buried' ? `dead ${tag}` : waiting(tag);
}
