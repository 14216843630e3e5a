/**
 * Returns a free port of 127.0.0.1 between 20000 and 31999. This is below the range of outgoing connections,
 * so the port is still free when its server restarts.
 */
export function freePort(): Promise<number>;
