import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, actOnAll, type BulkProgress } from './api.js';
import { count, plural } from './format.js';
import { frozen, refreshes, say } from './state.js';

/** Questions before an act, and the progress of acts on many jobs. One at a time. */

export interface Question {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly isDanger?: boolean;
  /** A field of text; with `mustBe` only that text is taken. */
  readonly field?: { readonly label: string; readonly value?: string; readonly mustBe?: string };
}

interface Asked extends Question {
  readonly answer: (value: string | null) => void;
}

const asked = signal<Asked | null>(null);

/** The text of the field, empty without one; null if the person does not want it. */
export function ask(question: Question): Promise<string | null> {
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
  useEffect(() => {
    setText(question?.field?.value ?? '');
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
            if (isReady) question.answer(text);
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

interface Running extends BulkProgress {
  readonly title: string;
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

/** Asks, and then acts on all jobs that match, with a bar that shows how far it is. */
export async function bulk(
  queue: string,
  kind: BulkKind,
  filter: Readonly<Record<string, string>>,
  about: string,
  perSecond = 0,
): Promise<void> {
  const isDanger = kind === 'remove' || kind === 'cancel';
  const reason = await ask({
    title: `${VERBS[kind]} all that match?`,
    text: `${VERBS[kind]} ${about} in queue ${queue}. Jobs that come later are left alone.`,
    button: `${VERBS[kind]} them`,
    isDanger,
    ...(kind === 'cancel' && { field: { label: 'Reason', value: 'cancelled on the dashboard' } }),
  });
  if (reason === null) return;
  isStopped = false;
  frozen.value = true;
  running.value = { title: `${VERBS[kind]} ${about}`, done: 0, examined: 0 };
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
  frozen.value = false;
}

export function BulkBar() {
  const bar = running.value;
  if (!bar) return null;
  return (
    <div class="bulkbar" role="status">
      <span>
        {bar.title}: {count(bar.done)} done, {count(bar.examined)} looked at
      </span>
      <progress aria-label="It is running" />
      <button type="button" onClick={() => (isStopped = true)}>
        Stop
      </button>
    </div>
  );
}
