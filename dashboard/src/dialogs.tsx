import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, actOnAll, type BulkProgress } from './api.js';
import { count, plural } from './format.js';
import { refreshes, say } from './state.js';

/** Questions before an act, and the progress of acts on many jobs. One at a time. */

export interface Question {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly isDanger?: boolean;
  /** A field of text; with `mustBe` only that text is taken. */
  readonly field?: { readonly label: string; readonly value?: string; readonly mustBe?: string };
  /** Whether it also asks how many jobs a second. */
  readonly hasRate?: boolean;
}

interface Answer {
  readonly text: string;
  /** 0: as fast as it goes. */
  readonly perSecond: number;
}

interface Asked extends Question {
  readonly answer: (value: Answer | null) => void;
}

const asked = signal<Asked | null>(null);

/** The text of the field, empty without one; null if the person does not want it. */
export async function ask(question: Question): Promise<string | null> {
  return (await askAll(question))?.text ?? null;
}

function askAll(question: Question): Promise<Answer | null> {
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer: (value) => {
        asked.value = null;
        resolve(value);
      },
    };
  });
}

/** Does it, says how it went, and loads the page again. */
export async function attempt(what: string, act: () => Promise<unknown>): Promise<boolean> {
  try {
    await act();
    say(what);
    return true;
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), true);
    return false;
  } finally {
    refreshes.value += 1;
  }
}

export function Dialog() {
  const question = asked.value;
  const ref = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [perSecond, setPerSecond] = useState(0);
  useEffect(() => {
    setText(question?.field?.value ?? '');
    setPerSecond(0);
    if (question) ref.current?.showModal();
    else ref.current?.close();
  }, [question]);
  const { field } = question ?? {};
  const isReady = field?.mustBe === undefined || text === field.mustBe;
  return (
    <dialog ref={ref} aria-labelledby="dialog-title" onCancel={() => question?.answer(null)}>
      {question && (
        <form
          method="dialog"
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady) question.answer({ text, perSecond });
          }}
        >
          <h2 id="dialog-title">{question.title}</h2>
          <p>{question.text}</p>
          {field && (
            <label class="field">
              <span>{field.label}</span>
              <input value={text} onInput={(event) => setText(event.currentTarget.value)} autoFocus />
            </label>
          )}
          {question.hasRate && (
            <label class="field">
              <span>At most per second</span>
              <select
                value={String(perSecond)}
                onChange={(event) => setPerSecond(Number(event.currentTarget.value))}
              >
                {RATES.map((rate) => (
                  <option key={rate} value={rate}>
                    {rate === 0 ? 'no limit' : count(rate)}
                  </option>
                ))}
              </select>
            </label>
          )}
          <div class="row end">
            <button type="button" onClick={() => question.answer(null)}>
              Keep as it is
            </button>
            <button type="submit" class={question.isDanger ? 'danger' : 'primary'} disabled={!isReady}>
              {question.button}
            </button>
          </div>
        </form>
      )}
    </dialog>
  );
}

const RATES = [0, 1, 10, 50, 200, 1_000];

interface Running extends BulkProgress {
  readonly title: string;
  /** How many jobs there are to look at; 0 if that is not known. */
  readonly total: number;
  readonly perSecond: number;
}
const running = signal<Running | null>(null);
let isStopped = false;

export const VERBS = { retry: 'Retry', promote: 'Run now', cancel: 'Cancel', remove: 'Remove' } as const;
const PAST = {
  retry: 'retried',
  promote: 'moved to the front',
  cancel: 'cancelled',
  remove: 'removed',
} as const;
export type BulkKind = keyof typeof VERBS;

export interface BulkTarget {
  readonly queue: string;
  readonly filter: Readonly<Record<string, string>>;
  /** The jobs in words. */
  readonly about: string;
  /** How many jobs there are to look at. */
  readonly total: number;
}

/** Asks, and then acts on all jobs that match, with a bar that shows how far it is. */
export async function bulk(kind: BulkKind, { queue, filter, about, total }: BulkTarget): Promise<void> {
  if (running.value) {
    say('Another action on many jobs is running. Wait for it, or stop it.', true);
    return;
  }
  const isDanger = kind === 'remove' || kind === 'cancel';
  const answer = await askAll({
    title: `${VERBS[kind]} all that match?`,
    text: `${VERBS[kind]} ${about} in queue ${queue}. Jobs that come later are left alone. It runs while this page is open.`,
    button: `${VERBS[kind]} them`,
    isDanger,
    hasRate: true,
    ...(kind === 'cancel' && { field: { label: 'Reason', value: 'cancelled on the dashboard' } }),
  });
  if (answer === null) return;
  const { text: reason, perSecond } = answer;
  isStopped = false;
  running.value = { title: `${VERBS[kind]} ${about}`, done: 0, examined: 0, total, perSecond };
  await attempt('', async () => {
    const request = { kind, filter, ...(kind === 'cancel' && { reason }) };
    const report = (progress: BulkProgress) => {
      if (running.value) running.value = { ...running.value, ...progress };
      return !isStopped;
    };
    const { done } = await actOnAll(queue, request, report, perSecond);
    setTimeout(() => say(`${plural(done, 'job')} ${PAST[kind]}${isStopped ? ', then stopped' : ''}.`));
  });
  running.value = null;
}

/** The browser asks before it leaves the page, because that would stop the act. */
window.addEventListener('beforeunload', (event) => {
  if (running.value) event.preventDefault();
});

export function BulkBar() {
  const bar = running.value;
  if (!bar) return null;
  return (
    <div class="bulkbar" role="status">
      <span>
        {bar.title}: {count(bar.done)} done, {count(bar.examined)}
        {bar.total >= bar.examined && bar.total > 0 && ` of ${count(bar.total)}`} looked at
        {bar.perSecond > 0 && `, at most ${count(bar.perSecond)} a second`}
      </span>
      {bar.total >= bar.examined && bar.total > 0 ? (
        <progress aria-label="How far it is" max={bar.total} value={bar.examined} />
      ) : (
        <progress aria-label="It is running" />
      )}
      <button type="button" onClick={() => (isStopped = true)}>
        Stop
      </button>
    </div>
  );
}
