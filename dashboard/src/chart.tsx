import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { axisTime, count, moment, span } from './format.js';
import { theme, zone } from './state.js';
import { Table } from './widgets.js';

/** Lines over time. */

interface Line {
  readonly label: string;
  /** A custom property of the style sheet. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

/** The time of a mark below a chart, with the day if the chart spans several days. */
function clock(seconds: number, all: readonly number[]): string {
  const step = (all[1] ?? seconds) - (all[0] ?? seconds);
  return axisTime(seconds * 1_000, (all.at(-1) ?? seconds) - all[0]! > 86_400, step < 60);
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value);
}

/** Values without a neighbour are drawn as points, because a line needs two values. */
function alone(plot: uPlot, series: number): number[] {
  const values = plot.data[series]!;
  const isThere = (at: number) => values[at] !== null && values[at] !== undefined;
  return [...values.keys()].filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1));
}

/** Steps of a time axis. Each mark is a whole number of its unit. */
const TIME_STEPS = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 4, 6, 12, 24, 48, 168].map((hours) => hours * 3_600_000),
];

/** Steps of an axis of counts: each mark is a whole number. */
const COUNT_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

const FONT = '12px system-ui';
const pen = document.createElement('canvas').getContext('2d');

/** The width of an axis with these marks. */
function widthOf(marks: readonly string[]): number {
  if (pen) pen.font = FONT;
  return 14 + Math.ceil(Math.max(24, ...marks.map((mark) => pen?.measureText(mark).width ?? 64)));
}

/** Lines over time, with a table of the same numbers for users of screen readers. */
export function Chart({
  times,
  lines,
  label,
  isTime = false,
}: {
  times: readonly number[];
  lines: readonly Line[];
  label: string;
  /** Whether the values are estimated durations in ms. Otherwise they are counts. */
  isTime?: boolean;
}) {
  const format = (value: number) => (isTime ? `≈\u00a0${span(value)}` : count(Math.round(value)));
  const mark = (value: number) =>
    value === 0 ? '0' : isTime ? span(value).replace('.0', '') : count(Math.round(value));
  const hovered = useSignal<number | null>(null);
  const [isOpen, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const themed = `${theme.value.value} ${zone.value.value}`;
  const shape = lines.map((line) => line.label).join('|');
  useEffect(() => {
    const box = ref.current!;
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: color('--faint'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
      font: FONT,
    };
    plot.current = new uPlot(
      {
        width: box.clientWidth || 600,
        height: 200,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, setScale: false } },
        hooks: { setCursor: [({ cursor: { idx } }) => (hovered.value = idx ?? null)] },
        scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.1)] } },
        axes: [
          { ...axis, size: 28, values: (_plot, at) => at.map((seconds) => clock(seconds, at)) },
          {
            ...axis,
            incrs: isTime ? TIME_STEPS : COUNT_STEPS,
            size: (_plot, marks) => widthOf(marks ?? []),
            values: (_plot, values) => values.map(mark),
          },
        ],
        series: [
          {},
          ...lines.map((line) => ({
            label: line.label,
            stroke: color(line.color),
            width: 2,
            points: { show: true, size: 5, fill: color(line.color), filter: alone },
          })),
        ],
      },
      [[], ...lines.map(() => [])] as unknown as uPlot.AlignedData,
      box,
    );
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height: 200 }));
    observer.observe(box);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [shape, themed]);
  useEffect(() => {
    plot.current?.setData([
      times.map((at) => at / 1_000),
      ...lines.map(({ values }) => values),
    ] as uPlot.AlignedData);
  });
  return (
    <figure class="chart">
      <Readout times={times} lines={lines} hovered={hovered} format={format} />
      <div ref={ref} role="img" aria-label={label} />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>As a table</summary>
        {isOpen && <Values times={times} lines={lines} label={label} format={format} />}
      </details>
    </figure>
  );
}

interface Shown {
  times: readonly number[];
  lines: readonly Line[];
  format: (value: number) => string;
}

/** The lines, each with its value at the mouse pointer, or with its last value. */
function Readout({ times, lines, hovered, format }: Shown & { hovered: ReadonlySignal<number | null> }) {
  const at = hovered.value ?? times.length - 1;
  const time = times[at];
  return (
    <figcaption>
      {lines.map((line) => (
        <span key={line.label} class={`legend ${line.color.slice(2)}`}>
          {line.label} <strong class="num">{shown(line.values[at], format)}</strong>
        </span>
      ))}
      {time !== undefined && <span class="faint num">{moment(time, hasDays(times))}</span>}
    </figcaption>
  );
}

const hasDays = (times: readonly number[]) => (times.at(-1) ?? 0) - (times[0] ?? 0) > 43_200_000;
const MAX_ROWS = 100;

/** The latest values, the newest first. */
function Values({ times, lines, label, format }: Shown & { label: string }) {
  const rows = [...times.keys()].slice(-MAX_ROWS).toReversed();
  return (
    <Table label={label} head={['Time', ...lines.map((line) => line.label)]}>
      {rows.map((at) => (
        <tr key={times[at]}>
          <td>{moment(times[at]!, hasDays(times))}</td>
          {lines.map((line) => (
            <td key={line.label} class="num">
              {shown(line.values[at], format)}
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}
