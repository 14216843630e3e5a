import type { RedisView } from '../../../lib/subpaths/dashboard/views.js';
import { usePoll } from '../api.js';
import { count, span } from '../format.js';
import { Card, Empty, Tile, Time, Waiting } from '../widgets.js';

export function RedisPage() {
  const { data, error } = usePoll<RedisView>('redis', 10_000);
  if (!data) return <Waiting error={error} />;
  const fact = (key: string) =>
    data.sections.flatMap(({ facts }) => facts).find(([name]) => name === key)?.[1];
  return (
    <>
      <h1>Redis</h1>
      <div class="tiles">
        <Tile label="Server" value={data.server ?? 'unknown'} />
        <Tile label="Round trip" value={`${data.roundTripMs.toFixed(1)} ms`} />
        <Tile label="Memory" value={fact('used_memory_human') ?? '–'} note={fact('maxmemory_policy') ?? ''} />
        <Tile
          label="Warnings"
          value={data.warnings.length}
          {...(data.warnings.length > 0 && { tone: 'bad' as const })}
        />
      </div>
      <Card title="Warnings" id="warnings">
        {data.warnings.length === 0 ? (
          <Empty title="The settings of Redis are right for a queue." />
        ) : (
          data.warnings.map(({ code, message }) => (
            <p key={code} class="notice bad">
              <strong>{code}</strong>: {message}
            </p>
          ))
        )}
      </Card>
      <div class="sections">
        {data.sections.map(({ title, facts }) => (
          <Card key={title} title={title} id={`redis-${title}`}>
            <dl>
              {facts.map(([key, value]) => (
                <div key={key}>
                  <dt>{key}</dt>
                  <dd>
                    <Fact name={key} value={value} />
                  </dd>
                </div>
              ))}
            </dl>
          </Card>
        ))}
      </div>
      {data.sections.length === 0 && (
        <Card>
          <Empty title="There is no Redis to describe.">
            Jobs are in the memory of this process, for development only.
          </Empty>
        </Card>
      )}
    </>
  );
}

const FLAGS = ['aof_enabled', 'loading'];

/** A value of `INFO`, with readable times and durations. */
function Fact({ name, value }: { name: string; value: string }) {
  const number = Number(value);
  if (name === 'maxmemory_human' && value === '0B') return <>no limit</>;
  if (!/^\d+$/.test(value)) return <>{value}</>;
  if (name === 'rdb_last_save_time') return <Time at={number * 1_000} />;
  if (name === 'uptime_in_seconds') return <>{span(number * 1_000)}</>;
  if (FLAGS.includes(name)) return <>{number === 0 ? 'no' : 'yes'}</>;
  return <>{count(number)}</>;
}
