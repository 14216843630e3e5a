export function promtool(): string | undefined;
