import type { EChartsOption, LineSeriesOption } from 'echarts';
import { sizeLabel } from '../report/words.js';
import { cells, draw, heading, legend, legendHeight, type Entry } from './draw.js';
import type { CurvePanel, PlottedCurve } from './panels.js';
import type { Theme } from './theme.js';

const HEAD = 56;
const PLOT = 150;
const FOOT = 66;
/** For the marks of the y axis. */
const MARKS = 46;

/** Small multiples, one per figure; a curve per system over its fitted line, both axes logarithmic. */
export function drawCurves(panels: readonly CurvePanel[], theme: Theme): string {
  const systems = Math.max(...panels.map(({ curves }) => curves.length));
  const head = HEAD + legendHeight(systems);
  const { at, height } = cells(panels.length, head + PLOT + FOOT);
  const colors = panels.map((panel) => colorsOf(panel, theme));
  const option: EChartsOption = {
    title: panels.flatMap((panel, i) => [
      heading(panel, at[i]!, theme),
      ...legend(entriesOf(panel, colors[i]!, theme), at[i]!),
    ]),
    grid: at.map(({ left, top, width }) => ({
      left: left + MARKS,
      top: top + head,
      width: width - MARKS - 16,
      height: PLOT,
    })),
    xAxis: panels.map((panel, i) => xAxis(panel, i, theme)),
    yAxis: panels.map((panel, i) => yAxis(panel, i, theme)),
    series: panels.flatMap(({ curves }, i) =>
      curves.flatMap((curve, c) => seriesOf(curve, i, colors[i]![c]!)),
    ),
  };
  return draw(option, height, theme);
}

function entriesOf({ curves }: CurvePanel, colors: readonly string[], theme: Theme): Entry[] {
  return curves.map(({ label, own }, i) => ({
    text: `${own ? '●' : '◆'} ${label}`,
    // The grey of a line is too faint for text.
    color: colors[i] === theme.peer ? theme.muted : colors[i]!,
    bold: own,
  }));
}

function xAxis({ xTitle, xUnit, xBase, curves }: CurvePanel, gridIndex: number, theme: Theme) {
  const xs = curves.flatMap(({ points }) => points.map(({ x }) => x));
  return {
    type: 'log' as const,
    gridIndex,
    logBase: xBase,
    min: Math.min(...xs),
    max: Math.max(...xs),
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

/** Whole powers of ten, so that a flat curve looks flat. */
function rangeOf({ curves }: CurvePanel): [number, number] {
  const ys = curves.flatMap(({ points }) => points.map(({ y }) => y));
  const min = 10 ** Math.floor(Math.log10(Math.min(...ys)));
  return [min, Math.max(powerAbove(Math.max(...ys)), min * 10)];
}

function powerAbove(value: number): number {
  // Logarithms of powers are slightly above or below the whole number.
  return 10 ** Math.ceil(Math.log10(value) - 1e-9);
}

/** The project in its usual colour; one peer in grey, several in their colours. */
function colorsOf({ curves }: CurvePanel, theme: Theme): string[] {
  const peers = curves.filter(({ own }) => !own);
  return curves.map((curve) => {
    if (curve.own) return theme.own;
    return peers.length === 1 ? theme.peer : theme.peers[peers.indexOf(curve) % theme.peers.length]!;
  });
}

function seriesOf(curve: PlottedCurve, panel: number, color: string): LineSeriesOption[] {
  const base = {
    type: 'line',
    xAxisIndex: panel,
    yAxisIndex: panel,
    silent: true,
    emphasis: { disabled: true },
  } as const;
  const dots: LineSeriesOption = {
    ...base,
    symbol: curve.own ? 'circle' : 'diamond',
    symbolSize: curve.own ? 8 : 9,
    itemStyle: { color },
    lineStyle: { width: 0 },
    data: curve.points.map(({ x, y }) => [x, y]),
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
