/** Returns the answer of a call, or the class of the error that it throws. */
export function outcomeOf(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return (error as Error).constructor;
  }
}

/** An object that throws on every access. */
export function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
