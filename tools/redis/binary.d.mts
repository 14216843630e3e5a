export function findServer(options: { readonly forTests: boolean }): string;
