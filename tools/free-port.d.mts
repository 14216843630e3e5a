/**
 * A port of 127.0.0.1 that nobody listens on, between 20000 and 31999: below those that systems give to outgoing
 * connections, so that it is still free when its server comes back after a moment away.
 */
export function freePort(): Promise<number>;
