// Samples by remote-write into a real Prometheus: complete, over restarts and kills of either side.
//
//   node remote_write_test.mjs NOS      ends with 77 (skipped) where there is no prometheus
import { ask, expect, file, freePort, needs, report, start, stop, Telemetry, until, work } from './processes.mjs'

const prometheus = needs('prometheus', 'Debian: apt-get install prometheus')
const port = await freePort()
file('prometheus.yml', 'scrape_configs: []\n')
const receive = () => start('prometheus', prometheus, [`--config.file=${file('prometheus.yml')}`,
  `--storage.tsdb.path=${work}/tsdb`, `--web.listen-address=127.0.0.1:${port}`,
  '--web.enable-remote-write-receiver', '--log.level=warn'])
const query = async (expr) => {
  const { code, body } = await ask('GET',
    `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expr)}`)
  return code === 200 ? JSON.parse(body).data.result : []
}
const number = async (expr) => Number((await query(expr))[0]?.value[1] ?? 0)

const telemetry = await Telemetry.make(process.argv[2], { export: { remoteWrite: {
  url: `http://127.0.0.1:${port}/api/v1/write`, externalLabels: 'region=eu', maxSamplesPerRequest: 100 } } })
const begin = Date.now() - 20 * 60_000
const nodes = ['a', 'b', 'c']
let sequence = 0
async function looks(count) {
  for (let i = 0; i < count; ++i) {
    ++sequence
    for (const node of nodes) {
      await telemetry.deliver(report({ node, sequence, at: begin + sequence * 10_000 }))
    }
  }
}
const all = () => until(`Prometheus has ${sequence} looks`, async () => {
  const samples = await number('sum(count_over_time(nos_gpu_power[1h]))')
  const slices = await number('sum(count_over_time(nos_instance_memory_used[1h]))')
  return samples === sequence * nodes.length * 2 && slices === sequence * nodes.length * 14 ||
    `${samples} of GPUs, ${slices} of slices`
})

receive()
await telemetry.start()
await looks(20)
await all()
const [one] = await query('last_over_time(nos_instance_utilization{pod="b-1-3"}[1h])')
for (const [name, value] of Object.entries({ cluster: 'prod', region: 'eu', node: 'b', gpu: '1',
  namespace: 'team', container: 'main', GPU_I_PROFILE: '1g.5gb', UUID: 'GPU-b-1', mig: 'MIG-b-1-3' })) {
  expect(one?.metric[name] === value, `label ${name} of ${JSON.stringify(one)}`)
}
const power = (await query('nos_gpu_power{node="a",gpu="0"}[1h]'))[0].values
expect(power.every(([at, value], i) => Math.round(at * 1000) === begin + (i + 1) * 10_000 &&
  Number(value) === 101 + i), 'times and values are those of the samples')

// Prometheus is stopped; samples are kept meanwhile, over a kill of nos.
await stop('prometheus')
await looks(20)
await stop('telemetry', 'SIGKILL')
await telemetry.start()
await looks(5)
await until('it says that it is behind', async () =>
  (await telemetry.metric('nos_telemetry_export_requests_total{export="remoteWrite",result="failed"}')) > 0)
receive()
await all()

// nos is killed while it delivers.
for (let i = 0; i < 3; ++i) {
  await looks(5)
  await stop('telemetry', 'SIGKILL')
  await telemetry.start()
}
await all()
await until('nothing is behind', async () =>
  (await telemetry.metric('nos_telemetry_export_lag_seconds{export="remoteWrite"}')) === 0)
console.log(`ok: ${sequence * nodes.length} envelopes`)
process.exit(0)
