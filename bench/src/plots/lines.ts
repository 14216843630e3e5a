import type { EChartsOption, LineSeriesOption } from 'echarts';
import { sizeLabel } from '../report/words.js';
import { cells, draw, heading, type Cell } from './draw.js';
import type { CurvePanel, PlottedCurve } from './panels.js';
import type { Theme } from './theme.js';

const PANEL = 254;
const HEAD = 58;
const FOOT = 62;
/** For the marks of the y axis. */
const MARKS = 46;
const LABEL = 15;

/** Small multiples, one per figure; a curve per system over its fitted line, both axes logarithmic. */
export function drawCurves(panels: readonly CurvePanel[], theme: Theme): string {
  const { at, height } = cells(panels.length, PANEL);
  const grids = at.map(({ left, top, width }) => ({
    left: left + MARKS,
    top: top + HEAD,
    width: width - MARKS - 12,
    height: PANEL - HEAD - FOOT,
  }));
  const option: EChartsOption = {
    title: panels.map((panel, i) => heading(panel, at[i]!, theme)),
    grid: grids,
    xAxis: panels.map((panel, i) => xAxis(panel, i, theme)),
    yAxis: panels.map((panel, i) => yAxis(panel, i, theme)),
    series: panels.flatMap((panel, i) => {
      const lifts = liftsOf(panel, grids[i]!);
      return panel.curves.flatMap((curve, c) => seriesOf(curve, { panel: i, lift: lifts[c]!, theme }));
    }),
  };
  return draw(option, height, theme);
}

function xAxis({ xTitle, xUnit, xBase, curves }: CurvePanel, gridIndex: number, theme: Theme) {
  const xs = curves.flatMap(({ points }) => points.map(({ x }) => x));
  return {
    type: 'log' as const,
    gridIndex,
    logBase: xBase,
    min: Math.min(...xs),
    max: powerAbove(Math.max(...xs), xBase),
    name: xTitle,
    nameLocation: 'middle' as const,
    nameGap: 28,
    nameTextStyle: { fontSize: 13, color: theme.muted },
    axisLabel: {
      fontSize: 12,
      color: theme.muted,
      hideOverlap: true,
      formatter: (value: number) => sizeLabel(value, xUnit),
    },
    axisLine: { onZero: false, lineStyle: { color: theme.line } },
    axisTick: { show: false },
    minorTick: { show: false },
    splitLine: { show: false },
  };
}

function yAxis(panel: CurvePanel, gridIndex: number, theme: Theme) {
  const [min, max] = rangeOf(panel);
  return {
    type: 'log' as const,
    gridIndex,
    logBase: 10,
    min,
    max,
    axisLabel: { fontSize: 12, color: theme.muted, formatter: (value: number) => sizeLabel(value) },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { lineStyle: { color: theme.line, width: 1 } },
  };
}

/** Whole powers of ten, so that what is flat looks flat. */
function rangeOf({ curves }: CurvePanel): [number, number] {
  const ys = curves.flatMap(({ points }) => points.map(({ y }) => y));
  const min = 10 ** Math.floor(Math.log10(Math.min(...ys)));
  return [min, Math.max(powerAbove(Math.max(...ys), 10), min * 10)];
}

function powerAbove(value: number, base: number): number {
  // Logarithms of powers come out a little above or below the whole number.
  return base ** Math.ceil(Math.log(value) / Math.log(base) - 1e-9);
}

/** By how much each label at the end of a curve is moved, so that none covers another: in pixels, downwards. */
function liftsOf(panel: CurvePanel, { height }: Pick<Cell, 'height'>): number[] {
  const [min, max] = rangeOf(panel);
  const place = (y: number): number => (1 - Math.log(y / min) / Math.log(max / min)) * height;
  const order = panel.curves
    .map(({ points }, index) => ({ index, at: place(points.at(-1)?.y ?? min) - LABEL }))
    .toSorted((a, b) => a.at - b.at);
  const lifts = panel.curves.map(() => 0);
  let free = -Infinity;
  for (const { index, at } of order) {
    const put = Math.max(at, free);
    lifts[index] = put - at;
    free = put + LABEL + 4;
  }
  return lifts;
}

interface Place {
  readonly panel: number;
  readonly lift: number;
  readonly theme: Theme;
}

function seriesOf(curve: PlottedCurve, { panel, lift, theme }: Place): LineSeriesOption[] {
  const color = curve.own ? theme.own : theme.peer;
  const base = {
    type: 'line',
    xAxisIndex: panel,
    yAxisIndex: panel,
    silent: true,
    emphasis: { disabled: true },
  } as const;
  const last = curve.points.length - 1;
  const dots: LineSeriesOption = {
    ...base,
    symbol: 'circle',
    symbolSize: curve.own ? 8 : 7,
    itemStyle: { color },
    lineStyle: { width: 0 },
    data: curve.points.map(({ x, y }, i) => ({
      value: [x, y],
      ...(i === last && {
        label: {
          show: true,
          position: 'top' as const,
          align: 'right' as const,
          offset: [6, lift],
          formatter: curve.label,
          fontSize: 13,
          fontWeight: curve.own ? (600 as const) : (400 as const),
          color: curve.own ? theme.own : theme.muted,
        },
      }),
    })),
  };
  if (curve.fitted === undefined) return [dots];
  const line: LineSeriesOption = {
    ...base,
    symbol: 'none',
    lineStyle: { color, width: curve.own ? 2.5 : 2, opacity: 0.6 },
    data: curve.fitted.map(({ x, y }) => [x, y]),
  };
  return [line, dots];
}
