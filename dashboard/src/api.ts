import { useEffect, useState } from 'preact/hooks';
import { frozen, refreshes, ROOT, trouble } from './state.js';

/** The calls to the server. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  let response: Response;
  try {
    response = await fetch(new URL(`api/v1/${path}`, ROOT), {
      method,
      headers: { accept: 'application/json', ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch {
    throw new ApiError(0, 'The application cannot be reached.');
  }
  const text = await response.text();
  let answer: any;
  try {
    answer = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new ApiError(response.status, `The server answered with ${response.status} and no JSON.`);
  }
  if (response.ok) return answer as T;
  const message: unknown = answer?.error?.message ?? answer?.message;
  throw new ApiError(
    response.status,
    typeof message === 'string' ? message : `The server answered with ${response.status}.`,
  );
}

export const get = <T>(path: string): Promise<T> => call<T>('GET', path);
export const post = <T = unknown>(path: string, body: object = {}): Promise<T> => call<T>('POST', path, body);
export const put = <T = unknown>(path: string, body: object): Promise<T> => call<T>('PUT', path, body);
export const del = <T = unknown>(path: string, body: object = {}): Promise<T> =>
  call<T>('DELETE', path, body);

export interface Polled<T> {
  readonly data: T | undefined;
  readonly error: ApiError | undefined;
  readonly reload: () => void;
}

/** Asks at once and then again and again, while the page is visible and not frozen; `everyMs` of 0 asks once. */
export function usePoll<T>(path: string | null, everyMs: number): Polled<T> {
  const [state, setState] = useState<{ path: string | null; data?: T; error?: ApiError }>({ path });
  const [turn, setTurn] = useState(0);
  const all = refreshes.value;
  useEffect(() => {
    if (path === null) return undefined;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      try {
        const data = await get<T>(path);
        if (isOver) return;
        trouble.value = null;
        setState({ path, data });
      } catch (error) {
        if (isOver) return;
        const fault = error instanceof ApiError ? error : new ApiError(0, String(error));
        const isAway = fault.status === 0 || fault.status >= 500;
        if (isAway) trouble.value = fault.message;
        // The page keeps the previous answer while it may still be true.
        setState((old) => ({ path, ...(isAway && old.path === path && { data: old.data }), error: fault }));
      }
      again();
    };
    const again = () => {
      if (everyMs > 0 && !isOver)
        timer = setTimeout(next, trouble.value ? Math.max(everyMs, 3_000) : everyMs);
    };
    const next = () => {
      if (document.hidden || frozen.value) again();
      else void ask();
    };
    void ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [path, everyMs, turn, all]);
  const isFresh = state.path === path;
  return {
    data: isFresh ? state.data : undefined,
    error: isFresh ? state.error : undefined,
    reload: () => setTurn((turn) => turn + 1),
  };
}
