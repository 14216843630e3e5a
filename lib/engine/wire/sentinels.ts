import { SentinelConnector, type Redis, type RedisOptions } from 'ioredis';

interface Connecting {
  connectToSentinel(...args: unknown[]): Redis;
}

/**
 * How the primary is found. ioredis listens to the sentinels for a failover, but not to the errors of those connections, and then writes them to
 * standard error. That one sentinel is down is no news; that none can be reached is told by the client itself.
 */
class Sentinels extends SentinelConnector {
  constructor(...args: ConstructorParameters<typeof SentinelConnector>) {
    super(...args);
    const self = this as unknown as Connecting;
    const connect = self.connectToSentinel.bind(this);
    self.connectToSentinel = (...given) => connect(...given).on('error', () => undefined);
  }
}

export const SENTINELS = Sentinels as unknown as NonNullable<RedisOptions['Connector']>;
