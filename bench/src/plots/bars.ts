import type { BarSeriesOption, EChartsOption } from 'echarts';
import { cells, draw, heading } from './draw.js';
import type { Bar, BarPanel } from './panels.js';
import type { Theme } from './theme.js';

const BAR = 24;
const HEAD = 46;
const FOOT = 22;
/** Space for the names to the left and the figures after the longest bar. */
const NAMES = 112;
const FIGURES = 84;

/** Small multiples, one per figure; a bar per system, all from 0, with the figure after it. */
export function drawBars(panels: readonly BarPanel[], theme: Theme): string {
  const most = Math.max(...panels.map(({ bars }) => bars.length));
  const { at, height } = cells(panels.length, HEAD + most * BAR + FOOT);
  const option: EChartsOption = {
    title: panels.map((panel, i) => heading(panel, at[i]!, theme)),
    grid: panels.map(({ bars }, i) => ({
      left: at[i]!.left + NAMES,
      top: at[i]!.top + HEAD,
      width: at[i]!.width - NAMES - FIGURES,
      height: bars.length * BAR,
    })),
    xAxis: panels.map(({ bars }, i) => ({
      type: 'value' as const,
      gridIndex: i,
      show: false,
      min: 0,
      max: Math.max(...bars.map(end)),
    })),
    yAxis: panels.map(({ bars }, i) => ({
      type: 'category' as const,
      gridIndex: i,
      inverse: true,
      data: bars.map(({ name, own }) => ({
        value: name,
        textStyle: {
          color: own ? theme.text : theme.muted,
          fontWeight: own ? (600 as const) : (400 as const),
        },
      })),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { fontSize: 13, margin: 8, interval: 0 },
    })),
    series: panels.flatMap(({ bars }, i) => seriesOf(bars, i, theme)),
  };
  return draw(option, height, theme);
}

function seriesOf(bars: readonly Bar[], panel: number, theme: Theme): BarSeriesOption[] {
  const part = (value: (bar: Bar) => number, own: string, peer: string): BarSeriesOption => ({
    type: 'bar',
    stack: `stack-${panel}`,
    xAxisIndex: panel,
    yAxisIndex: panel,
    silent: true,
    emphasis: { disabled: true },
    barWidth: 15,
    data: bars.map((bar) => ({ value: value(bar), itemStyle: { color: bar.own ? own : peer } })),
  });
  const tail = part((bar) => end(bar) - bar.value, theme.ownTail, theme.peerTail);
  return [
    part(({ value }) => value, theme.own, theme.peer),
    {
      ...tail,
      data: bars.map((bar, i) => ({
        ...(tail.data![i] as object),
        value: end(bar) - bar.value,
        label: {
          show: true,
          position: 'right' as const,
          formatter: bar.label,
          fontSize: 13,
          fontWeight: bar.own ? (600 as const) : (400 as const),
          color: theme.text,
        },
      })),
    },
  ];
}

function end({ value, tail }: Bar): number {
  return Math.max(value, tail ?? 0);
}
