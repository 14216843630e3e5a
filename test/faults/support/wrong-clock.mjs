// Imported into a process before anything else: its wall clock, also that of its threads, is off by CLOCK_OFFSET_MS.
const offset = Number(process.env.CLOCK_OFFSET_MS);
const TrueDate = Date;

globalThis.Date = class Date extends TrueDate {
  constructor(...args) {
    if (args.length === 0) super(TrueDate.now() + offset);
    else super(...args);
  }

  static now() {
    return TrueDate.now() + offset;
  }
};
