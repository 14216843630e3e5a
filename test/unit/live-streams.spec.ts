import { EventEmitter } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import { Subject } from 'rxjs';
import type { QueueEvents } from '#lib/events/queue-events.js';
import type { RawResponse } from '#lib/subpaths/dashboard/http.js';
import { LiveStreams } from '#lib/subpaths/dashboard/live.js';
import type { Redactor } from '#lib/subpaths/dashboard/redaction.js';

afterEach(() => vi.useRealTimers());

it('a stream ends after a minute and says so, because its reader may have lost the right to it', () => {
  vi.useFakeTimers();
  const leave = vi.fn<() => void>();
  const events = { status$: new Subject(), reader: { listen: () => leave } } as unknown as QueueEvents;
  const streams = new LiveStreams(events, {} as Redactor, 1);
  const written: string[] = [];
  const end = vi.fn<() => void>();
  const response = Object.assign(new EventEmitter(), {
    req: { method: 'GET' },
    writeHead: () => undefined,
    write: (text: string) => written.push(text),
    end,
  });
  streams.start(
    response as unknown as RawResponse,
    [{ name: 'payroll', canSeeData: true }],
    undefined,
    undefined,
    undefined,
  );
  vi.advanceTimersByTime(59_999);
  expect(end).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(written.at(-1)).toBe('event: status\ndata: over\n\n');
  expect([end, leave].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
