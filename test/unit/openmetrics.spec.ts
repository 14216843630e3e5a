import { expect, it } from 'vitest';
import { isOpenMetrics } from '#lib/subpaths/prometheus/text.js';

it.each([
  // Of Prometheus: by default, and with a `scrape_protocols` that prefers the text format.
  ['application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1', true],
  ['text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1', false],
  ['application/openmetrics-text;q=0, text/plain', false],
  ['Application/OpenMetrics-Text; q=0.2', true],
  ['*/*', false],
  [undefined, false],
])('the page of metrics is OpenMetrics only for a reader that prefers it: %s', (accept, isOpen) => {
  expect(isOpenMetrics(accept)).toBe(isOpen);
});
