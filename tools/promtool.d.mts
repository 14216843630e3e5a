export function promtool(): string | undefined;
export function prometheus(): string | undefined;
