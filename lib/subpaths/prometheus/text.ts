/** The name, type and help text of a metric. */
export interface MetricInfo {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
}

export type Labels = Readonly<Record<string, string>>;

/** One series of a counter or gauge. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** A run in a bucket of a histogram, with its trace. */
export interface Exemplar {
  readonly traceId: string;
  /** In the unit of the histogram. */
  readonly value: number;
  /** Seconds since 1970. */
  readonly at: number;
}

/** One series of a histogram. */
export interface HistogramSample {
  readonly labels: Labels;
  /** Upper bounds, without `+Inf`. */
  readonly bounds: readonly number[];
  /** The count of each bucket alone, not cumulative. There is one more than bounds. */
  readonly classes: readonly number[];
  readonly sum: number;
  /** The newest traced run of each bucket. */
  readonly exemplars?: readonly (Exemplar | undefined)[];
}

/** A metric with its series. */
export interface Family extends MetricInfo {
  readonly samples: readonly (Sample | HistogramSample)[];
}

/** One sample: a line of the page, or a value of a metric in another registry. */
interface Line {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
  /** Only in OpenMetrics. */
  readonly exemplar?: Exemplar | undefined;
}

export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
export const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** Whether an `Accept` header prefers OpenMetrics: Prometheus does by default, other readers get the older format. */
export function isOpenMetrics(accept: string | undefined): boolean {
  const weight = weightIn(accept ?? '', 'application/openmetrics-text');
  return weight > 0 && weight >= weightIn(accept!, 'text/plain');
}

/** The highest `q` of a type in an `Accept` header; 0 if it is not named. */
function weightIn(accept: string, type: string): number {
  const weights = accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim()))
    .filter(([name]) => name === type)
    .map((parts) => Number(parts.find((part) => part.startsWith('q='))?.slice(2) ?? 1));
  return Math.max(0, ...weights.filter((weight) => !Number.isNaN(weight)));
}

/** A page of metrics. */
export function render(families: readonly Family[], openMetrics: boolean): string {
  const parts = families.filter(({ samples }) => samples.length > 0).map((one) => block(one, openMetrics));
  return parts.join('') + (openMetrics ? '# EOF\n' : '');
}

/** The lines of a metric: a histogram has one for each bound, and its sum and count. */
export function linesOf({ name, samples }: Family, openMetrics = false): Line[] {
  return samples.flatMap((sample) =>
    'value' in sample ? [{ name, ...sample }] : histogramLines(name, sample, openMetrics),
  );
}

function block(family: Family, openMetrics: boolean): string {
  const { name, type, help } = family;
  // In OpenMetrics `_total` belongs to the sample, not to the metric.
  const described = openMetrics && type === 'counter' ? name.replace(/_total$/, '') : name;
  const head = `# HELP ${described} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${described} ${type}\n`;
  return head + linesOf(family, openMetrics).map(lineText).join('');
}

function lineText({ name, labels, value, exemplar }: Line): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
  const more = exemplar
    ? ` # {trace_id="${escapeLabel(exemplar.traceId)}"} ${exemplar.value} ${exemplar.at}`
    : '';
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${numberText(value)}${more}\n`;
}

function histogramLines(name: string, sample: HistogramSample, openMetrics: boolean): Line[] {
  const { labels, bounds, classes, sum, exemplars } = sample;
  let count = 0;
  const lines = classes.map((inside, i): Line => {
    count += inside;
    const bound = bounds[i];
    const le = bound === undefined ? '+Inf' : boundText(bound, openMetrics);
    return {
      name: `${name}_bucket`,
      labels: { ...labels, le },
      value: count,
      exemplar: openMetrics ? exemplars?.[i] : undefined,
    };
  });
  return [
    ...lines,
    { name: `${name}_sum`, labels, value: sum },
    { name: `${name}_count`, labels, value: count },
  ];
}

/** OpenMetrics writes bounds as floats. */
function boundText(bound: number, openMetrics: boolean): string {
  return openMetrics && Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
