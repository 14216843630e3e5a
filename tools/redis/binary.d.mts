export function findServer(options: { readonly forTests: boolean; readonly quiet?: boolean }): string;
