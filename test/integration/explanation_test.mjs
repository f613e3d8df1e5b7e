// Pods that are stuck, each in its own way: every surface gives the same headline and remedy, word by word.
//
//   node explanation_test.mjs NOS
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { ask, expect, fail, file, start, stop, until, work } from './processes.mjs'

const nos = process.argv[2]
const pod = (name, limits, more = {}) => ({
  apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'stuck', ...more.metadata },
  spec: { schedulerName: 'nos-scheduler', ...more.spec,
    containers: [{ name: 'c', image: 'i', resources: { limits, requests: more.requests } }] },
})
const slice = (profile, count = 1) => ({ [`nvidia.com/mig-${profile}`]: String(count) })
const on = (node) => ({ spec: { nodeSelector: { 'kubernetes.io/hostname': node } } })

// Name: the pod, and the code and the text of its remedy.
const stuck = {
  'other-model': [pod('other-model', slice('1g.12gb')), 'AddNode',
    /^add a node that the pod may use, with GPUs for 1g.12gb such as /],
  'no-model': [pod('no-model', slice('9g.99gb')), 'RequestExistingProfile', /no known GPU model/],
  'too-many': [pod('too-many', slice('1g.5gb', 1000)), 'SplitPod', /^split the pod: 1000 x 1g.5gb/],
  gated: [pod('gated', slice('1g.5gb'), { spec: { schedulingGates: [{ name: 'example.com/approval' }] } }),
    'LiftGate', /example.com\/approval/, ['PodScheduled']],  // the API server writes that condition
  selector: [pod('selector', slice('1g.5gb'), { spec: { nodeSelector: { zone: 'mars' } } }),
    'LiftConstraints', /zone=mars/],
  cpu: [pod('cpu', { ...slice('1g.5gb'), cpu: '500' }), 'AddNode', /at least 500 cpu/],
  waits: [pod('waits', slice('7g.40gb'), on('node-1')), 'WaitForPods',
    /^wait for the end of pod stuck\/holder on node node-1/],
  cordoned: [pod('cordoned', slice('1g.5gb'), on('node-3')), 'LiftConstraints', /^uncordon node node-3/],
  volume: [pod('volume', slice('1g.5gb'), { spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'absent' } }] } }),
    'LiftConstraints', /absent/, ['plan', 'Event SliceReservationExpired']],  // plans do not look at volumes
  quota: [{ ...pod('quota', slice('3g.20gb')), metadata: { name: 'quota', namespace: 'limited' } },
    'RaiseQuota', /^raise max of nos.nebuly.com\/gpu-memory in elastic quota limited\/small/],
  gang: [pod('gang', slice('1g.5gb'), { spec: { schedulingGroup: { podGroupName: 'trio' } } }),
    'CompleteGang', /stuck\/trio/, ['PodScheduled', 'dashboard', 'Event FailedScheduling']],  // the reason says it
  daemon: [pod('daemon', slice('7g.40gb'), {
    metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }] },
    spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] }] } } } } }),
    'WaitForPods', /pod stuck\/holder on node node-1/],
  'daemon-beside-empty': [pod('daemon-beside-empty', slice('2g.10gb'), {
    metadata: { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'e', uid: 'e', controller: true }] },
    spec: { schedulerName: 'default-scheduler', affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-2'] }] }] } } } } }),
    'UseDeployment', /^run it as a Deployment with a nodeSelector for node node-2/,
    ['what-if']],  // it asks about a pod without an owner
  whole: [pod('whole', { 'nvidia.com/gpu': '1' }, on('node-1')), 'AddNode', /at least 1 nvidia.com\/gpu/],
  shares: [pod('shares', { 'nvidia.com/gpu-10gb': '1' }), 'AddNode', /gpu-partitioning|10gb/],
}
const objects = [
  ...['stuck', 'limited'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
  { apiVersion: 'nos.nebuly.com/v1alpha1', kind: 'ElasticQuota', metadata: { name: 'small', namespace: 'limited' },
    spec: { min: { 'nos.nebuly.com/gpu-memory': 10 }, max: { 'nos.nebuly.com/gpu-memory': 10 } } },
  pod('holder', slice('7g.40gb'), on('node-1')),
]
const run = (...args) => {
  const { status, stdout, stderr } = spawnSync(nos, args, { encoding: 'utf8', maxBuffer: 1 << 26,
    env: { ...process.env, KUBECONFIG: file('kubeconfig') } })
  expect(status === 0, `nos ${args.join(' ')}: ${status}: ${stderr}`)
  return stdout
}

file('objects.yaml', objects.map((object) => JSON.stringify(object)).join('\n---\n'))
start('sandbox', nos, ['sandbox', '--nodes', '3', '--gpus', '1', '--model', 'A100-40GB', '--speed', '10',
  '--workload', file('objects.yaml'), '--dashboard-port', '0', '--kubeconfig', file('kubeconfig')])
let api, dashboard
await until('the sandbox runs', async () => {
  const log = readFileSync(`${work}/sandbox.log`, 'utf8')
  dashboard = log.match(/^dashboard: (http\S+)\/$/m)?.[1]
  const config = (() => { try { return readFileSync(file('kubeconfig'), 'utf8') } catch { return '' } })()
  api = config.match(/server: (\S+)/)?.[1]
  return api !== undefined && dashboard !== undefined || log.slice(-200)
})
const get = async (path) => JSON.parse((await ask('GET', api + path)).body)
const call = async (method, path, body, type = 'application/json') => {
  const text = JSON.stringify(body)
  const { code, body: answer } = await ask(method, api + path, { body: text,
    headers: { 'content-type': type, 'content-length': Buffer.byteLength(text) } })
  expect(code >= 200 && code < 300, `${method} ${path}: ${code}: ${answer}`)
}
await until('holder runs', async () => (await get('/api/v1/namespaces/stuck/pods/holder')).status?.phase === 'Running')
await call('PATCH', '/api/v1/nodes/node-3', { spec: { unschedulable: true } }, 'application/merge-patch+json')

// One pod at a time, so that none waits for another.
const conditionsOf = (object) => (object.status.conditions ?? [])
  .filter(({ type, status }) => ['PodScheduled', 'nos.nebuly.com/Partitioned'].includes(type) && status === 'False')
// The strings in a value, at any depth.
const textsIn = (value) => typeof value === 'string' ? [value]
  : value === null || typeof value !== 'object' ? [] : Object.values(value).flatMap(textsIn)
// The remedy at the end of the first text that has one.
const remedyIn = (value) => textsIn(value).find((text) => text.includes(' Remedy: '))
  ?.split(' Remedy: ')[1].replace(/\.$/, '')
// The first explanation in a value, at any depth.
const explanationIn = (value) => value === null || typeof value !== 'object' ? undefined
  : value.explanation ?? Object.values(value).map(explanationIn).find((one) => one !== undefined)
const faults = []
for (const [name, [object, code, pattern, silent = []]] of Object.entries(stuck)) {
  const { namespace } = object.metadata
  const path = `/api/v1/namespaces/${namespace}/pods`
  await call('POST', path, object)
  // Until the controllers have nothing to add, their warnings after half a minute of the sandbox included.
  let last = '', since = 0
  await until(`${name} is settled`, async () => {
    const { items } = await get(`/api/v1/namespaces/${namespace}/events`)
    const events = items.filter((one) => one.involvedObject.name === name).map((one) => one.message)
    const now = JSON.stringify([conditionsOf(await get(`${path}/${name}`)), events])
    if (now !== last) [last, since] = [now, Date.now()]
    return Date.now() - since > 4000
  })
  const why = JSON.parse(run('explain', name, '-n', namespace, '-o', 'json'))
  const said = {}  // by surface: the remedy
  for (const condition of conditionsOf(await get(`${path}/${name}`))) said[condition.type] = remedyIn(condition)
  const { items } = await get(`/api/v1/namespaces/${namespace}/events`)
  for (const event of items.filter((one) => one.involvedObject.name === name && one.type === 'Warning')) {
    said[`Event ${event.reason}`] = remedyIn(event.message)
  }
  const plan = JSON.parse(run('plan', '-o', 'json'))
  const planned = plan.pods.find((one) => one.name === name && one.namespace === namespace)
  if (planned) said.plan = planned.remedy
  const headlines = { plan: planned?.explanation.headline }  // by surface
  const listed = JSON.parse(run('get', 'pods', name, '-n', namespace, '-o', 'json'))
  said['get pods'] = remedyIn(listed)
  headlines['get pods'] = explanationIn(listed)?.headline
  const shown = JSON.parse((await ask('GET', `${dashboard}/api/v1/workloads/${namespace}/${name}`)).body)
  said.dashboard = remedyIn(shown)
  headlines.dashboard = shown.explanation.headline
  const checked = JSON.parse(spawnSync(nos, ['check', '-o', 'json'], { encoding: 'utf8', maxBuffer: 1 << 26,
    env: { ...process.env, KUBECONFIG: file('kubeconfig') } }).stdout)  // it fails, for nos is not installed there
  headlines.check = checked.checks.find((one) => one.code === 'PendingPod' && one.message.includes(`${namespace}/${name}`))?.message
  const whatIf = await ask('POST', `${dashboard}/api/v1/what-if`, {
    body: JSON.stringify({ pod: JSON.stringify({ ...object, metadata: { ...object.metadata, name: `${name}-2` } }) }),
    headers: { 'content-type': 'application/json', 'x-nos-csrf': '1' } })
  if (whatIf.code === 200) headlines['what-if'] = JSON.parse(whatIf.body).explanation.headline.replaceAll(`${name}-2`, name)
  if (whatIf.code === 200) said['what-if'] = textsIn(JSON.parse(whatIf.body)).find((text) => text.startsWith('remedy: '))?.slice(8)
  if (process.env.VERBOSE) console.log(name, JSON.stringify(said, null, 1), why.remedy, whatIf.code, whatIf.body.slice(0, 300))
  for (const [surface, text] of Object.entries(headlines)) {
    if (surface === 'plan' && (!planned || silent.includes('plan'))) continue
    if (surface === 'what-if' && silent.includes('what-if')) continue
    if (text !== why.headline) faults.push(`${name}: headline of ${surface}: ${text} instead of ${why.headline}`)
  }
  if (why.eta !== null || !why.eta_reason) faults.push(`${name}: eta ${why.eta}, ${why.eta_reason}`)
  if (why.remedyCode !== code) faults.push(`${name}: code ${why.remedyCode}`)
  if (!pattern.test(why.remedy)) faults.push(`${name}: ${why.remedy}`)
  let surfaces = 0
  for (const [surface, text] of Object.entries(said)) {
    if (silent.includes(surface)) continue
    ++surfaces
    if (text !== why.remedy) faults.push(`${name}: ${surface}: ${text}`)
  }
  if (surfaces < (silent.length > 0 ? 1 : 5)) faults.push(`${name}: only ${Object.keys(said)}`)
  await call('DELETE', `${path}/${name}`, {})
  await until(`${name} is gone`, async () => (await ask('GET', `${api}${path}/${name}`)).code === 404)
}
if (faults.length > 0) fail(faults.join('\n'))
await stop('sandbox')
