// Starts programs under test and real peers, and waits for them. All end with the test.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, openSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

export const work = mkdtempSync(join(tmpdir(), 'nos-test-'))
const running = new Map()
process.on('exit', (code) => {
  for (const [name, child] of running) {
    child.kill('SIGKILL')
    if (code === 1) {
      console.error(`--- end of the log of ${name}\n` +
        readFileSync(join(work, `${name}.log`), 'utf8').split('\n').slice(-30).join('\n'))
    }
  }
  rmSync(work, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
process.on('unhandledRejection', (error) => fail(error.stack ?? String(error)))

export function fail(text) {
  console.error(`FAILED: ${text}`)
  process.exit(1)
}
export function expect(ok, text) { if (!ok) fail(text) }

// Ends the test as skipped if the program is not installed.
export function needs(program, hint) {
  const found = spawnSync('sh', ['-c', `command -v ${program} || PATH=/usr/sbin:$PATH command -v ${program}`],
    { encoding: 'utf8' }).stdout.trim()
  if (found !== '') return found
  console.log(`skipped: no ${program} on this machine (${hint})`)
  process.exit(77)
}

export const file = (name, text) => {
  const path = join(work, name)
  if (text !== undefined) writeFileSync(path, text)
  return path
}

export function start(name, command, args, env = {}) {
  const log = openSync(join(work, `${name}.log`), 'a')
  const child = spawn(command, args, { stdio: ['pipe', log, log], cwd: work,
    env: { ...process.env, HOME: work, ...env } })
  child.ended = new Promise((resolve) => child.on('exit', resolve))
  running.set(name, child)
  return child
}
export async function stop(name, signal = 'SIGTERM') {
  const child = running.get(name)
  running.delete(name)
  child.kill(signal)
  await child.ended
}

export function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

// {code, body}; code 0: no answer.
export function ask(method, url, { headers = {}, body } = {}) {
  return new Promise((resolve) => {
    const sent = request(url, { method, headers }, (answer) => {
      const parts = []
      answer.on('data', (part) => parts.push(part))
      answer.on('end', () => resolve({ code: answer.statusCode, body: Buffer.concat(parts).toString() }))
    })
    sent.on('error', (error) => resolve({ code: 0, body: String(error) }))
    sent.end(body)
  })
}

// Polls until the result is true, for a minute: the peers send no notification.
export async function until(what, look, seconds = 60) {
  const deadline = Date.now() + seconds * 1000
  let last
  do {
    last = await look()
    if (last === true) return
    for (const [name, child] of running) {
      if (child.exitCode !== null) fail(`${name} has ended while waiting for: ${what}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  } while (Date.now() < deadline)
  fail(`${what}: ${JSON.stringify(last)}`)
}

// --- nos telemetry ---

export class Telemetry {
  // `config`: additions to its configuration.
  constructor(nos, config, ports) { Object.assign(this, { nos, config, ...ports }) }
  static async make(nos, config) {
    file('tokens', '* a-secret-of-the-tests\n')
    return new Telemetry(nos, config, { port: await freePort(), metrics: await freePort() })
  }
  async start() {
    const config = file('telemetry.yaml', JSON.stringify({
      apiVersion: 'config.nos.nebuly.com/v1alpha1', kind: 'TelemetryConfig',
      listen: { bindAddress: `127.0.0.1:${this.port}` },
      health: { healthProbeBindAddress: `127.0.0.1:${this.metrics}` },
      metrics: { bindAddress: `127.0.0.1:${this.metrics}` },
      ingest: { tokenFile: file('tokens') },
      store: { file: join(work, 'telemetry.db') },
      ...this.config,
    }))
    start('telemetry', this.nos, ['telemetry', '--config', config])
    await until('telemetry is ready', async () =>
      (await ask('GET', `http://127.0.0.1:${this.metrics}/readyz`)).code === 200)
  }
  // Repeats until it is accepted.
  async deliver(envelope) {
    const body = gzipSync(JSON.stringify(envelope), { level: 1 })
    const answer = await ask('POST', `http://127.0.0.1:${this.port}/api/v1/ingest`, { body,
      headers: { authorization: 'Bearer a-secret-of-the-tests', 'content-type': 'application/json',
        'content-encoding': 'gzip', 'content-length': body.length } })
    expect(answer.code === 200, `ingest answers ${answer.code}: ${answer.body}`)
  }
  // The value of a line of /metrics, or undefined.
  async metric(line) {
    const { body } = await ask('GET', `http://127.0.0.1:${this.metrics}/metrics`)
    const found = body.split('\n').find((one) => one.startsWith(`${line} `))
    return found && Number(found.slice(line.length + 1))
  }
}

// An agent's report of a node at one time: GPUs with seven slices, each held by a pod.
export function report({ cluster = 'prod', node, sequence, at, gpus = 2 }) {
  const records = []
  for (let gpu = 0; gpu < gpus; ++gpu) {
    const uuid = `GPU-${node}-${gpu}`
    records.push({ kind: 'gpu', at, gpu: uuid, index: gpu, metrics: { power: 100 + sequence,
      temperature: 50, memory_used: 1000, memory_total: 40960, sm_clock: 1410, memory_clock: 1215,
      power_limit: 400, ecc_corrected: 0, ecc_uncorrected: 0 } })
    for (let slice = 0; slice < 7; ++slice) {
      records.push({ kind: 'instance', at, gpu: uuid, instance: `MIG-${node}-${gpu}-${slice}`,
        metrics: { utilization: 0.5, memory_used: 100 * slice, memory_total: 4864 } })
    }
  }
  records.push({ kind: 'layout', at, node, mode: 'mig', gpus: [...Array(gpus).keys()].map((gpu) => ({
    index: gpu, gpu: `GPU-${node}-${gpu}`, product: 'NVIDIA A100-SXM4-40GB', memory: 40960, slots: 8,
    mig: true, health: '', holders: [], instances: [...Array(7).keys()].map((slice) => ({
      id: slice, instance: `MIG-${node}-${gpu}-${slice}`, profile: '1g.5gb', start: slice, size: 1,
      holders: [{ namespace: 'team', pod: `${node}-${gpu}-${slice}`, container: 'main' }] })) })) })
  return { schema: 1, cluster, source: `node/${node}`, boot: 'boot-1', sequence, sent_at: at, lost: 0,
    records }
}
