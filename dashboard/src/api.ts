import { useEffect, useRef, useState } from 'preact/hooks';
import { MAYBE_DONE } from '../../lib/errors/for-operators.js';
import { frozen, now, pace, refreshes, ROOT, troubles, troubleSince } from './state.js';

/** The calls to the server. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code?: string,
  ) {
    super(message);
  }
}

/** A read that takes longer fails, because a browser does not notice that a network has dropped the connection. */
const READ_MS = 30_000;

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(new URL(`api/v1/${path}`, ROOT), {
      method,
      headers: { accept: 'application/json', ...(body && { 'content-type': 'application/json' }) },
      ...(body ? { body: JSON.stringify(body) } : { signal: AbortSignal.timeout(READ_MS) }),
    });
    text = await response.text();
  } catch {
    throw new ApiError(0, `The application cannot be reached${body ? MAYBE : ''}.`);
  }
  let answer: any;
  try {
    answer = text === '' ? {} : JSON.parse(text);
  } catch {
    // A proxy or guard that requires a login sends a login page.
    throw response.ok
      ? new ApiError(401, LOGIN)
      : new ApiError(
          response.status,
          `The server answered with ${response.status} and no JSON${body && response.status >= 500 ? MAYBE : ''}.`,
        );
  }
  if (response.ok) return answer as T;
  if (response.status === 401) throw new ApiError(401, LOGIN);
  // The message of the error says whether a change took effect. A read changes nothing.
  if (!body && answer?.error?.code === 'GODWIT_REDIS_UNAVAILABLE')
    throw new ApiError(response.status, `The server cannot reach Redis${causeOf(answer.error.message)}.`);
  const message: unknown = answer?.error?.message ?? answer?.message;
  throw new ApiError(
    response.status,
    typeof message === 'string' ? message : `The server answered with ${response.status}.`,
    answer?.error?.code,
  );
}

/** ` (connect ECONNREFUSED 127.0.0.1:6379)`, from an error of the connection. */
const causeOf = (message: unknown) => / \([^;]+\)(?=; |$)/.exec(String(message))?.[0] ?? '';

/** After an act without an answer. */
const MAYBE = `; ${MAYBE_DONE}`;

const LOGIN = 'You are not logged in any more.';

export const get = <T>(path: string): Promise<T> => call<T>('GET', path);
export const post = <T = unknown>(path: string, body: object = {}): Promise<T> => call<T>('POST', path, body);
export const put = <T = unknown>(path: string, body: object): Promise<T> => call<T>('PUT', path, body);
export const del = <T = unknown>(path: string, body: object = {}): Promise<T> =>
  call<T>('DELETE', path, body);

export interface Polled<T> {
  readonly data: T | undefined;
  /** The data of the path. Until it is loaded, the data of the previous path. */
  readonly last: T | undefined;
  readonly error: ApiError | undefined;
}

/** The latest answers by path. With them, a page that was open before appears at once, at its old scroll position. */
const answers = new Map<string, unknown>();
const MAX_ANSWERS = 30;

function keep(path: string, data: unknown): void {
  answers.delete(path);
  answers.set(path, data);
  for (const oldest of answers.keys()) if (answers.size > MAX_ANSWERS) answers.delete(oldest);
}

function setTrouble(path: string, message: string | null): void {
  if ((troubles.value.get(path) ?? null) === message) return;
  const next = new Map(troubles.value);
  if (message === null) next.delete(path);
  else next.set(path, message);
  troubles.value = next;
  if (message !== null) troubleSince.value ??= now.peek();
}

function endTrouble(path: string): void {
  setTrouble(path, null);
  if (troubles.value.size === 0) troubleSince.value = null;
}

/** Ends the troubles of other reads soon after the server and Redis are back. */
export function useProbe(): void {
  usePoll(troubles.value.size > 0 ? PROBE : null, 0);
}

interface Answered<T> {
  readonly path: string | null;
  readonly data: T | undefined;
  readonly error?: ApiError;
}

/** A read that examines more jobs takes Redis about 100 ms, and each open tab repeats it. */
const MANY_EXAMINED = 1_000;
const SLOW_MS = 30_000;

/** How long to wait before a read that examined this many jobs is repeated. */
export function pauseAfter(examined: number, usualMs: number): number {
  return examined > MANY_EXAMINED ? SLOW_MS : usualMs;
}

/** After these answers the previous one is wrong. After others, such as that of a server without Redis, it may still be true. */
const FINAL = [400, 403, 404];
/** A read that failed is repeated after its usual time, or at the nearest of these. */
const AGAIN_MS = 3_000;
const LATEST_AGAIN_MS = 10_000;

/**
 * A cheap read of Redis. While other reads fail, it is repeated often until it gets an answer. Then those that failed are repeated at
 * once.
 */
const PROBE = 'bulk';
const PROBE_MS = 1_500;
/** Repeats the read of this path at once, if it waits for its time. */
const sooner = new Map<string, () => void>();

/** A read that a page repeats after a longer time costs more. It is not repeated earlier than that. */
const CHEAP_MS = 4_000;

/** The time until a read is repeated, as the person has chosen; 0: never. @param own the time of the page. */
function pauseOf(own: number): number {
  const chosen = pace.value.peek();
  if (own === 0 || chosen === 'auto') return own;
  if (chosen === 'off') return 0;
  const ms = Number.parseInt(chosen, 10) * 1_000;
  return own > CHEAP_MS ? Math.max(own, ms) : ms;
}

/**
 * Reads the path at once, and then repeatedly while the page is visible and not frozen. With `everyMs` 0 it reads until there
 * is an answer.
 *
 * @param isHeld whether the page keeps the answer that it shows now.
 */
export function usePoll<T>(
  path: string | null,
  everyMs: number | ((latest: T | undefined) => number),
  isHeld = false,
): Polled<T> {
  const [state, setState] = useState<Answered<T>>({ path: null, data: undefined });
  const given = useRef({ isHeld, everyMs });
  given.current = { isHeld, everyMs };
  const all = refreshes.value;
  useEffect(() => {
    if (path === null) return undefined;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    /** Whether a read was due while the page was not visible. */
    let isLate = false;
    const ask = async () => {
      try {
        const data = await get<T>(path);
        if (isOver) return;
        endTrouble(path);
        keep(path, data);
        setState({ path, data });
        if (path === PROBE) for (const failed of troubles.value.keys()) sooner.get(failed)?.();
      } catch (error) {
        if (isOver) return;
        const fault = error instanceof ApiError ? error : new ApiError(0, String(error));
        const isFinal = FINAL.includes(fault.status);
        if (isFinal) {
          endTrouble(path);
          answers.delete(path);
        } else setTrouble(path, fault.message);
        const kept = answers.get(path) as T | undefined;
        setState((old) => ({
          path,
          data: isFinal ? undefined : old.path === path ? old.data : kept,
          error: fault,
        }));
      }
      again();
    };
    const again = () => {
      const { everyMs: every } = given.current;
      const own = typeof every === 'number' ? every : every(answers.get(path) as T | undefined);
      const usual = pauseOf(own);
      const afterFault = path === PROBE ? PROBE_MS : Math.min(Math.max(usual, AGAIN_MS), LATEST_AGAIN_MS);
      const ms = troubles.value.has(path) ? afterFault : usual;
      if (ms > 0 && !isOver) timer = setTimeout(next, ms);
    };
    const next = () => {
      timer = undefined;
      isLate = document.hidden;
      if (isLate) return;
      const isHeld = given.current.isHeld && !troubles.value.has(path);
      if (frozen.value || isHeld) again();
      else void ask();
    };
    const onVisible = () => {
      if (isLate) next();
    };
    const askSooner = () => {
      if (timer === undefined) return;
      clearTimeout(timer);
      next();
    };
    document.addEventListener('visibilitychange', onVisible);
    sooner.set(path, askSooner);
    void ask();
    return () => {
      isOver = true;
      if (sooner.get(path) === askSooner) sooner.delete(path);
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onVisible);
    };
  }, [path, all]);
  useEffect(() => (path === null ? undefined : () => setTrouble(path, null)), [path]);
  const isFresh = state.path === path;
  const data = isFresh ? state.data : (answers.get(path ?? '') as T | undefined);
  return { data, last: data ?? state.data, error: isFresh ? state.error : undefined };
}
