// Telemetry of two clusters in a real ClickHouse: complete and without duplicates, over kills of
// either side.
//
//   node clickhouse_test.mjs NOS      ends with 77 (skipped) where there is no clickhouse-server
import { mkdirSync } from 'node:fs'
import { ask, expect, file, freePort, needs, report, start, stop, Telemetry, until, work } from './processes.mjs'

const server = needs('clickhouse-server', 'Debian: apt-get install clickhouse-server')
const port = await freePort()
mkdirSync(`${work}/clickhouse/data`, { recursive: true })
mkdirSync(`${work}/clickhouse/tmp`)
file('users.xml', `<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
<users><nos><password>of tests</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></nos></users><quotas><default/></quotas></yandex>`)
file('clickhouse.xml', `<yandex><logger><level>warning</level><console>1</console></logger>
<http_port>${port}</http_port><listen_host>127.0.0.1</listen_host><path>${work}/clickhouse/data/</path>
<tmp_path>${work}/clickhouse/tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size>
<users_config>${file('users.xml')}</users_config><default_profile>default</default_profile>
<default_database>default</default_database></yandex>`)
file('password', 'of tests\n')
const authorization = `Basic ${Buffer.from('nos:of tests').toString('base64')}`
const query = (sql) => ask('POST', `http://127.0.0.1:${port}/`, { body: sql, headers: { authorization } })
const number = async (sql) => Number((await query(sql)).body)
async function serve() {
  start('clickhouse', server, [`--config-file=${file('clickhouse.xml')}`])
  await until('ClickHouse answers', async () => (await query('SELECT 1')).body === '1\n')
}

const telemetry = await Telemetry.make(process.argv[2], { export: { clickHouse: {
  url: `http://127.0.0.1:${port}`, username: 'nos', passwordFile: file('password'), database: 'gpus',
  samplesDays: 30 } } })
const begin = Date.now() - 20 * 60_000
let sequence = 0
async function looks(count) {
  for (let i = 0; i < count; ++i) {
    ++sequence
    for (const cluster of ['east', 'west']) {
      await telemetry.deliver(report({ cluster, node: 'n', sequence, at: begin + sequence * 10_000 }))
    }
  }
}
// Rows after merging of parts.
const all = () => until(`ClickHouse has ${sequence} looks`, async () => {
  const of = (table, where) => number(`SELECT count() FROM gpus.${table} FINAL WHERE ${where}`)
  const found = [await of('samples', "metric = 'power'"), await of('samples', "subject LIKE 'instance/%'"),
    await of('records', "kind = 'layout'"), await of('envelopes', "lost = 0 AND records = 17")]
  return String(found) === String([4, 84, 2, 2].map((each) => each * sequence)) || found
})

await serve()
await telemetry.start()
await looks(10)
await all()
const row = (await query(`SELECT cluster, subject, metric, at, value FROM gpus.samples FINAL
  WHERE cluster = 'west' AND metric = 'power' AND subject = 'gpu/GPU-n-1' ORDER BY at LIMIT 1`)).body
expect(row === `west\tgpu/GPU-n-1\tpower\t${begin + 10_000}\t101\n`, `a sample: ${row}`)
const layout = (await query(`SELECT object, source, boot, sequence, visitParamExtractString(body, 'mode')
  FROM gpus.records FINAL WHERE cluster = 'east' AND kind = 'layout' ORDER BY at LIMIT 1`)).body
expect(layout === 'n\tnode/n\tboot-1\t1\tmig\n', `a record: ${layout}`)
// The query in docs/telemetry-export.md.
const hours = (await query(`SELECT namespace, round(sum(value) / count(), 2) AS utilization, uniqExact(pod) AS pods
  FROM gpus.samples FINAL WHERE metric = 'utilization' AND cluster = 'west' AND namespace != '' GROUP BY namespace`)).body
expect(hours === 'team\t0.5\t14\n', `by namespace: ${hours}`)
expect(await number("SELECT count() > 0 FROM gpus.samples WHERE subject = 'cluster'") === 1, 'derived series')
expect(await number('SELECT max(version) FROM gpus.schema_versions') === 1, 'the schema has a version')

// ClickHouse is stopped; records are kept meanwhile, over a kill of nos. Too old records are
// dropped when it returns.
await query("INSERT INTO gpus.samples VALUES ('2020-01-01', 'old', 's', 'm', 1577836800000, 1, '', '', '')")
await stop('clickhouse', 'SIGKILL')
await looks(10)
await stop('telemetry', 'SIGKILL')
await telemetry.start()
await looks(5)
await serve()
await all()
await until('old days are dropped', async () =>
  (await number("SELECT count() FROM gpus.samples WHERE cluster = 'old'")) === 0)

// nos is killed while it delivers: a record that is delivered twice is stored once.
for (let i = 0; i < 5; ++i) {
  await looks(3)
  await stop('telemetry', 'SIGKILL')
  await telemetry.start()
}
await all()
await query('OPTIMIZE TABLE gpus.samples FINAL')
expect(await number("SELECT count() FROM gpus.samples WHERE metric = 'power'") === 4 * sequence,
  'merged parts have each sample once')
console.log(`ok: ${sequence * 2} envelopes`)
process.exit(0)
