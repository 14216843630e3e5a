import type { Turn } from './turn.js';

/** One line on stderr: rewritten in place on a terminal, one line per measurement elsewhere. */
export class Progress {
  private readonly startedAt = performance.now();
  private readonly live = process.stderr.isTTY;
  private index = 0;
  private label = '';

  constructor(private readonly total: number) {}

  begin({ scenario, contender, round }: Turn): void {
    this.index += 1;
    this.label = `[${this.index}/${this.total}] ${scenario.name} · ${contender} · round ${round}`;
    const left = this.timeLeft();
    if (this.live) this.step('starting', 0);
    else process.stderr.write(`${this.label}${left && ` · ${left}`}\n`);
  }

  step(what: string, share: number): void {
    if (!this.live) return;
    const left = this.timeLeft();
    this.rewrite(`${this.label} · ${what} ${Math.round(share * 100)} %${left && ` · ${left}`}`);
  }

  failed(message: string): void {
    if (this.live) this.rewrite('');
    process.stderr.write(`${this.label} failed: ${message}\n`);
  }

  end(): void {
    if (this.live) this.rewrite('');
  }

  private rewrite(text: string): void {
    process.stderr.write(`\r\u001b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`);
  }

  /** Measurements take different times, so this is an estimate, and there is none at first. */
  private timeLeft(): string {
    const done = this.index - 1;
    if (done < 3) return '';
    const minutes = (((performance.now() - this.startedAt) / done) * (this.total - done)) / 60_000;
    return minutes < 1 ? 'less than a minute left' : `about ${Math.round(minutes)} min left`;
  }
}
