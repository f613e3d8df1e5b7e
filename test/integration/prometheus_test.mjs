// A real Prometheus scrapes nos on a cluster (the simulated API server, the doubles of a node),
// configured like the chart's ServiceMonitors: the dashboards' queries return data, and GPU
// readings join with pods.
//
//   node prometheus_test.mjs NOS BUILD ROOT      ends with 77 (skipped) without prometheus or kubectl
import { readFileSync, readdirSync, existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { ask, expect, fail, file, freePort, needs, start, Telemetry, until, work } from './processes.mjs'

const [nos, build, root] = process.argv.slice(2)
const prometheus = needs('prometheus', 'Debian: apt-get install prometheus')
const kubectl = needs('kubectl', 'Debian: apt-get install kubernetes-client')
const kubeconfig = file('kubeconfig')
start('apiserver', join(build, 'test/integration/nos_apiserver'), [kubeconfig])
await until('the API server listens', () => existsSync(kubeconfig))
function k(input, ...args) {
  const ran = spawnSync(kubectl, args, { input, encoding: 'utf8', env: { ...process.env, KUBECONFIG: kubeconfig } })
  if (ran.status !== 0) fail(`kubectl ${args.join(' ')}: ${ran.stdout}${ran.stderr}`)
  return ran.stdout
}
const apply = (object) => k(JSON.stringify(object), 'apply', '--validate=false', '-f', '-')

// --- A cluster with a node of two GPUs, a quota, a running pod, and a pending pod ---
const crds = readFileSync(join(root, 'deploy/kustomize/base/nos.yaml'), 'utf8').split(/^---\n/m)
  .filter((each) => /^kind: CustomResourceDefinition$/m.test(each))
expect(crds.length === 2, 'deploy/kustomize has the kinds of quotas')
k(crds.join('---\n'), 'apply', '--validate=false', '-f', '-')
apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } })
const profile = 'nvidia.com/mig-1g.10gb'
apply({ apiVersion: 'nos.nebuly.com/v1alpha1', kind: 'ElasticQuota', metadata: { name: 'quota', namespace: 'team' },
  spec: { min: { 'nos.nebuly.com/gpu-memory': '40', cpu: '10' }, max: { cpu: '20' } } })
const pod = (name, count, cpu = '1') => apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'team' },
  spec: { schedulerName: 'nos-scheduler', containers: [{ name: 'main', image: 'example/any',
    resources: { requests: { cpu }, limits: { [profile]: count } } }] } })
pod('train', 1)
pod('too-large', 100)
const state = file('gpus.json', JSON.stringify({ node: 'gpu-1', gpus: [{ model: 'H100-80GB' },
  { model: 'H100-80GB', mig: false, readings: { utilization: 40 } }] }))
const driver = { NOS_NVML_DOUBLE_STATE: state }
start('node', join(build, 'nos-node-double'), ['--kubeconfig', kubeconfig, '--name', 'gpu-1', '--folder',
  join(work, 'kubelet'), '--label', 'nos.nebuly.com/gpu-partitioning=mig',
  '--label', 'nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3', '--label', 'nvidia.com/gpu.count=2'], driver)

// --- nos ---
const telemetry = await Telemetry.make(nos, {})
await telemetry.start()
const deliver = (spool) => ({ endpoint: `http://127.0.0.1:${telemetry.port}`, cluster: 'prod',
  tokenFile: file('token', 'a-secret-of-the-tests'), spoolFolder: join(work, spool) })
const ports = { telemetry: telemetry.metrics }
const leaderElection = { resourceNamespace: 'default' }
async function daemon(command, documents, env = {}) {
  ports[command] = await freePort()
  const own = documents.at(-1) // the last document has its address
  Object.assign(own, { apiVersion: 'config.nos.nebuly.com/v1alpha1', health: { healthProbeBindAddress: '0' },
    metrics: { bindAddress: `127.0.0.1:${ports[command]}` } })
  const path = file(`${command}.yaml`, documents.map((each) => JSON.stringify(each)).join('\n---\n'))
  start(command, nos, [command, '--config', path, '--kubeconfig', kubeconfig], env)
}
await daemon('agent', [{ kind: 'MigAgentConfig', telemetry: { ...deliver('spool-agent'), intervalSeconds: 1 },
  devicePlugin: { folder: join(work, 'kubelet/device-plugins') },
  podResourcesSocket: join(work, 'kubelet/pod-resources.sock'),
  nvmlLibrary: join(build, 'test/doubles/nvml/libnvidia-ml.so.1') }], { ...driver, NODE_NAME: 'gpu-1' })
await daemon('partitioner', [{ kind: 'GpuPartitionerConfig', leaderElection }])
// It counts acknowledged plans, also for the scheduler's plans, once it leads.
await until('the partitioner leads', async () => {
  const { body } = await ask('GET', `http://127.0.0.1:${ports.partitioner}/metrics`)
  return /^nos_leader\S* 1$/m.test(body) || 'it does not'
})
await daemon('scheduler', [{ apiVersion: 'kubescheduler.config.k8s.io/v1', kind: 'KubeSchedulerConfiguration',
  leaderElection, profiles: [{ schedulerName: 'nos-scheduler' }] }, { kind: 'SchedulerConfig' }])
await daemon('operator', [{ kind: 'OperatorConfig', leaderElection, telemetry: deliver('spool-operator') }])
await until('the pod runs', () => k('', 'get', 'pod', '-n', 'team', 'train', '-o', 'jsonpath={.status.phase}') === 'Running' ||
  k('', 'get', 'pods', '-n', 'team', '-o', 'jsonpath={.items[*].status}'))
// --- A kube-state-metrics double with the joined metrics; then Prometheus ---
const states = createServer((_, answer) => answer.end('kube_pod_owner{namespace="team",pod="train",' +
  'owner_kind="Job",owner_name="train",owner_is_controller="true"} 1\n')).listen(0, '127.0.0.1')
await new Promise((resolve) => states.on('listening', resolve))
const components = { agent: 'mig-agent', partitioner: 'gpu-partitioner', scheduler: 'scheduler',
  operator: 'operator', telemetry: 'telemetry' }
const jobs = Object.entries(ports).map(([command, port]) => ({ job_name: `nos-${components[command]}-metrics`,
  honor_labels: true, static_configs: [{ targets: [`127.0.0.1:${port}`], labels: { namespace: 'nos-system',
    pod: `nos-${components[command]}-0`, node: command === 'agent' ? 'gpu-1' : 'worker' } }] }))
jobs.push({ job_name: 'kube-state-metrics', honor_labels: true,
  static_configs: [{ targets: [`127.0.0.1:${states.address().port}`] }] })
file('prometheus.yml', JSON.stringify({ global: { scrape_interval: '1s', evaluation_interval: '1s' },
  rule_files: [join(root, 'deploy/prometheus/alerts.yaml')], scrape_configs: jobs }))
const port = await freePort()
start('prometheus', prometheus, [`--config.file=${file('prometheus.yml')}`, `--storage.tsdb.path=${work}/tsdb`,
  `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn'])
const get = async (path) => {
  const { code, body } = await ask('GET', `http://127.0.0.1:${port}/api/v1/${path}`)
  return code === 200 ? JSON.parse(body).data : undefined
}
const query = async (expr) => (await get(`query?query=${encodeURIComponent(expr)}`))?.result ?? []
await until('all are scraped', async () => {
  const up = await query('up == 1')
  return up.length === jobs.length || up.map(({ metric }) => metric.job)
})

// --- Queries that must be empty in a healthy cluster; all others have data ---
const empty = /nos_agent_gpu_conditions|XID_ERRORS.* > 0|nos_config_reloads|nos_webhook|_refused_records|nos_telemetry_export|preemption_victims|result="error"|flush_duration|slice_wait|store_bytes|state="free"|nos_autoscaler|nos_pool/
const wanted = []
for (const name of readdirSync(join(root, 'deploy/grafana'))) {
  for (const panel of JSON.parse(readFileSync(join(root, 'deploy/grafana', name), 'utf8')).panels) {
    for (const { expr } of panel.targets ?? []) {
      if (!empty.test(expr)) wanted.push([`${name}: ${panel.title}`, expr.replaceAll('$__rate_interval', '30s').replace(/\$\w+/g, '.*')])
    }
  }
}
expect(wanted.length > 45, `only ${wanted.length} queries to ask`)
await until('each query of the dashboards gives data', async () => {
  const without = []
  for (const [where, expr] of wanted) if ((await query(expr)).length === 0) without.push(`${where}: ${expr}`)
  return without.length === 0 || without
}, 90)

// --- Joins ---
const used = await query('DCGM_FI_DEV_FB_USED{GPU_I_ID!=""}')
const held = used.filter(({ metric }) => metric.pod !== undefined)
expect(held.length === 1 && held[0].metric.pod === 'train' && held[0].metric.namespace === 'team' &&
  held[0].metric.container === 'main' && held[0].metric.node === 'gpu-1' && held[0].metric.Hostname === 'gpu-1',
`who holds the slice: ${JSON.stringify(held)}`)
const whole = await query('DCGM_FI_DEV_FB_USED{GPU_I_ID=""}')
expect(whole.length === 2 && whole.every(({ metric }) => metric.pod === undefined),
  `a GPU that no pod holds has no pod, not the agent's: ${JSON.stringify(whole)}`)
const owners = await query('DCGM_FI_DEV_FB_USED * on (namespace, pod) group_left (owner_name) kube_pod_owner')
expect(owners.length === 1 && owners[0].metric.owner_name === 'train', 'kube-state-metrics joins')
const quota = await query('nos_quota_amount{amount="min",resource="cpu"}')
expect(quota.length === 1 && quota[0].metric.namespace === 'team' && quota[0].value[1] === '10', `a quota: ${JSON.stringify(quota)}`)

// --- The alerts are evaluated without errors ---
const { groups } = await get('rules')
for (const group of groups) {
  for (const rule of group.rules) {
    expect(rule.health !== 'err', `${rule.name}: ${rule.lastError}`)
    expect(rule.state !== 'firing', `${rule.name} fires where all is well`)
  }
}
expect(groups.length === 5, 'five groups of rules')
console.log(`ok: ${wanted.length} queries give data`)
process.exit(0)
