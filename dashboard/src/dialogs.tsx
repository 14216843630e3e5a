import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, post } from './api.js';
import { count } from './format.js';
import { queuePath, refreshes, say } from './state.js';

/** Dialogs that ask before something is done. */

interface Question {
  readonly title: string;
  readonly text: string;
  readonly button: string;
  readonly isDanger?: boolean;
  /** A text field. With `mustBe`, only that text is accepted. */
  readonly field?: { readonly label: string; readonly value?: string; readonly mustBe?: string };
  /** Whether the dialog also asks for a maximum number of jobs per second. */
  readonly hasRate?: boolean;
}

interface Answer {
  readonly text: string;
  /** 0: no limit. */
  readonly perSecond: number;
}

interface Asked extends Question {
  readonly answer: (value: Answer | null) => void;
}

const asked = signal<Asked | null>(null);

/** The text of the field, or an empty text without a field; null if the person cancels. */
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

/** Performs the action, shows the result, and loads the data of the page again. */
export async function attempt<T>(
  what: string | ((answer: T) => string),
  act: () => Promise<T>,
): Promise<boolean> {
  // A second press, while the network is slow, must not act twice.
  const button = document.activeElement?.closest('button, form');
  if (button?.ariaBusy === 'true') return false;
  if (button) button.ariaBusy = 'true';
  try {
    const answer = await act();
    say(typeof what === 'string' ? what : what(answer));
    return true;
  } catch (error) {
    say(error instanceof ApiError ? error.message : String(error), true);
    return false;
  } finally {
    if (button) button.ariaBusy = null;
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
            <button
              type="submit"
              class={question.isDanger ? 'danger' : 'primary'}
              disabled={!isReady}
              autoFocus={!question.isDanger && !field && !question.hasRate}
            >
              {question.button}
            </button>
          </div>
        </form>
      )}
    </dialog>
  );
}

const RATES = [0, 1, 10, 50, 200, 1_000];

export const VERBS = { retry: 'Retry', promote: 'Run now', cancel: 'Cancel', remove: 'Remove' } as const;
export type BulkKind = keyof typeof VERBS;

interface BulkTarget {
  readonly queue: string;
  readonly filter: Readonly<Record<string, string>>;
  /** The words for the jobs in the dialog. */
  readonly about: string;
}

/** Asks, and then starts an act on all jobs that match. The server performs it. */
export async function bulk(kind: BulkKind, { queue, filter, about }: BulkTarget): Promise<void> {
  const isDanger = kind === 'remove' || kind === 'cancel';
  const answer = await askAll({
    title: `${VERBS[kind]} all that match?`,
    text: `${VERBS[kind]} ${about} in queue ${queue}. Jobs that are added later are not affected. The server does the work, so you can close this page.`,
    button: `${VERBS[kind]} them`,
    isDanger,
    hasRate: true,
    ...(kind === 'cancel' && { field: { label: 'Reason', value: 'cancelled on the dashboard' } }),
  });
  if (answer === null) return;
  const { text: reason, perSecond } = answer;
  const request = {
    kind,
    filter,
    ...(kind === 'cancel' && { reason }),
    ...(perSecond > 0 && { rate: { max: perSecond, per: '1s' } }),
  };
  await attempt('Started.', () => post(`${queuePath(queue)}/bulk`, request));
}
