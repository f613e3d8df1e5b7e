// Snapshots of a cluster to a double of a walk:ai backend that is as strict as the real one: it
// refuses a whole snapshot for one unknown word, or a null in place of a list.
//
//   node walkai_test.mjs NOS
import { createServer } from 'node:http'
import { expect, fail, file, report, stop, Telemetry, until } from './processes.mjs'

const profiles = new Set(['1g.10gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.79gb'])
const statuses = new Set(['Running', 'Pending', 'PodInitializing', 'ContainerCreating', 'Completed', 'Error',
  'Succeeded', 'CrashLoopBackOff', 'Failed', 'Terminating'])
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/
const keys = (object, wanted) => String(Object.keys(object).sort()) === String(wanted)
const valid = ({ ts, gpus, pods, ...rest }) => time.test(ts) && Object.keys(rest).length === 0 &&
  Array.isArray(gpus) && Array.isArray(pods) &&
  gpus.every((gpu) => keys(gpu, ['allocated', 'available', 'gpu']) && profiles.has(gpu.gpu) &&
    Number.isInteger(gpu.allocated) && Number.isInteger(gpu.available)) &&
  pods.every((pod) => keys(pod, ['finish_time', 'gpu', 'name', 'namespace', 'start_time', 'status']) &&
    profiles.has(pod.gpu) && statuses.has(pod.status) &&
    [pod.start_time, pod.finish_time].every((at) => at === null || time.test(at)))
let snapshot, code = 204, asked = 0
const backend = createServer(async (request, answer) => {
  let body = ''
  for await (const part of request) body += part
  ++asked
  if (request.headers.authorization !== 'Bearer pat-of-an-admin') fail(`who: ${request.headers.authorization}`)
  if (request.method !== 'POST' || request.url !== '/cluster/insights') fail(`${request.method} ${request.url}`)
  const told = JSON.parse(body)
  if (!valid(told)) fail(`the backend answers 422 to ${body}`)
  if (code === 204) snapshot = told
  answer.writeHead(code).end()
}).listen(0, '127.0.0.1')
await new Promise((resolve) => backend.on('listening', resolve))

const telemetry = await Telemetry.make(process.argv[2], { export: { walkai: { cluster: 'prod', intervalSeconds: 1,
  url: `http://127.0.0.1:${backend.address().port}/cluster/insights`, tokenFile: file('pat', 'pat-of-an-admin\n') } } })
await telemetry.start()
let sequence = 0
const tell = (records, cluster = 'prod') => telemetry.deliver({ schema: 1, cluster, source: 'cluster', boot: 'b',
  sequence: ++sequence, sent_at: Date.now(), lost: 0, records })
const pod = (name, state, profile = '1g.10gb') => ({ kind: 'pod', at: Date.now(), uid: `uid-${name}`,
  namespace: 'walkai', name, node: 'n', state, reason: 'ImagePullBackOff', message: '', priority: 0, quota: '',
  requests: { [`nvidia.com/mig-${profile}`]: 2, cpu: 1 }, capacity: '', created: Date.now() - 5000,
  scheduled: Date.now(), started: Date.now(), finished: state === 'succeeded' ? Date.now() : 0 })
const told = (name) => snapshot?.pods.find((each) => each.name === name)?.status

// Another model in another cluster, for which the backend has no name.
const layout = report({ node: 'n', sequence: 1, at: Date.now() }).records.at(-1)
await tell([layout, pod('a100', 'running', '1g.5gb')])
await tell([pod('elsewhere', 'running')], 'other')
await until('a snapshot', () => snapshot !== undefined)
expect(snapshot.gpus.length === 0 && snapshot.pods.length === 0, JSON.stringify(snapshot))
layout.gpus[0].instances.forEach((instance) => { instance.profile = '1g.10gb' })
layout.gpus[0].instances[6].holders = []
layout.at = Date.now()
await tell([layout, pod('job', 'running'), pod('waits', 'pending', '7g.80gb'), pod('new', 'of another version')])
await until('it is told', () => told('job') === 'Running' && told('waits') === 'Pending' || JSON.stringify(snapshot))
expect(JSON.stringify(snapshot.gpus) === '[{"gpu":"1g.10gb","allocated":6,"available":1}]', JSON.stringify(snapshot.gpus))

// A job ends and is deleted while the backend is stopped and nos is killed: its end is still
// reported.
code = 503
await tell([pod('job', 'succeeded')])
await tell([{ kind: 'removed', at: Date.now(), what: 'pod', id: 'uid-job' }])
const before = asked
await until('it is tried', () => asked > before)
await stop('telemetry', 'SIGKILL')
code = 204
snapshot = undefined
await telemetry.start()
await until('the end is told', () => told('job') === 'Succeeded' || JSON.stringify(snapshot))
console.log('ok')
process.exit(0)
