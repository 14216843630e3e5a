/** What one queue keeps of its schedules. */
export class ScheduleBook {
  /** When the first of them is next to fire, ms; null where none is. */
  get firstAt(): number | null {
    return null;
  }

  /** The queue was obliterated. */
  clear(): void {}
}
