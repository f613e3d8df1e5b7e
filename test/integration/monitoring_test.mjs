// Alerts and Grafana dashboards: rules and their tests pass promtool, each dashboard is valid, each
// query is PromQL, and each metric in them is listed in docs/metrics.md (the test metrics_doc
// checks that file).
//
//   node monitoring_test.mjs ROOT      ends with 77 (skipped) where there is no promtool
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = process.argv[2]
const work = mkdtempSync(join(tmpdir(), 'nos-monitoring-'))
process.on('exit', () => rmSync(work, { recursive: true }))
const fail = (text) => { console.error(`FAILED: ${text}`); process.exit(1) }
const promtool = (...args) => {
  const ran = spawnSync('promtool', args, { encoding: 'utf8' })
  if (ran.status !== 0) fail(`promtool ${args.join(' ')}\n${ran.stdout}${ran.stderr}`)
  return ran.stdout
}
if (spawnSync('promtool', ['--version']).error) {
  console.log('skipped: no promtool on this machine (Debian: apt-get install prometheus)')
  process.exit(77)
}

// Metrics of kube-state-metrics that queries may join with, and Prometheus' own.
const foreign = new Set(['kube_pod_owner', 'up'])
const known = new Set([...readFileSync(join(root, 'docs/metrics.md'), 'utf8')
  .matchAll(/^\| `([A-Za-z_]+)` \| (\w+) /gm)].flatMap(([, name, kind]) =>
    kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]))
if (known.size < 60) fail(`docs/metrics.md names only ${known.size} metrics`)

const words = new Set(['and', 'or', 'unless', 'by', 'without', 'on', 'ignoring', 'group_left',
  'group_right', 'offset', 'bool', 'ALERTS'])
function metricsOf(expr) {
  const bare = expr.replace(/"(\\.|[^"\\])*"/g, '""').replace(/\{[^}]*\}/g, ' ')
    .replace(/\[[^\]]*\]/g, ' ').replace(/\boffset\s+\w+/g, ' ')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
  return [...bare.matchAll(/[A-Za-z_:][A-Za-z0-9_:]*(?!\w)(?!\s*\()/g)].map(([name]) => name)
    .filter((name) => !words.has(name))
}
function checkNames(where, expr) {
  const names = metricsOf(expr)
  if (names.length === 0) fail(`${where}: no metric in ${expr}`)
  for (const name of names) {
    if (!known.has(name) && !foreign.has(name)) fail(`${where}: no component exports ${name}: ${expr}`)
  }
}

// --- Alerts ---
const rules = join(root, 'deploy/prometheus/alerts.yaml')
const tests = join(root, 'deploy/prometheus/alerts_test.yaml')
promtool('check', 'rules', rules)
promtool('test', 'rules', tests)
const alerts = readFileSync(rules, 'utf8').split(/^      - alert: /m).slice(1)
for (const alert of alerts) {
  const name = alert.slice(0, alert.indexOf('\n'))
  const expr = /\n        expr: (?:>-\n)?([\s\S]*?)\n        (?:for|labels):/.exec(alert)[1]
  checkNames(name, expr)
  for (const part of ['severity:', 'summary:', 'description:']) {
    if (!alert.includes(part)) fail(`${name} has no ${part}`)
  }
  if (!readFileSync(tests, 'utf8').includes(`alertname="${name}"`)) fail(`${name} is not tested`)
}
if (alerts.length < 20) fail(`only ${alerts.length} alerts`)

// --- Dashboards ---
const folder = join(root, 'deploy/grafana')
const queries = []
for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  const board = JSON.parse(readFileSync(join(folder, file), 'utf8'))
  if (`${board.uid}.json` !== file) fail(`${file}: its uid is ${board.uid}`)
  const ids = new Set(), places = new Set()
  for (const panel of board.panels) {
    const place = `${panel.gridPos.x} ${panel.gridPos.y}`
    if (ids.has(panel.id) || places.has(place)) fail(`${file}: two panels with one id or place`)
    ids.add(panel.id)
    places.add(place)
    if (panel.type !== 'row' && !panel.targets?.length) fail(`${file}: ${panel.title} asks nothing`)
    for (const target of panel.targets ?? []) queries.push([`${file}: ${panel.title}`, target.expr])
  }
  const variables = new Set(board.templating.list.map(({ name }) => name))
  for (const [, name] of JSON.stringify(board.panels).matchAll(/\$\{?([a-z]\w*)/g)) {
    if (!variables.has(name)) fail(`${file}: there is no variable ${name}`)
  }
  for (const { query, type } of board.templating.list) {
    if (type !== 'query') continue
    const metric = /^label_values\((\w+), \w+\)$/.exec(query)?.[1]
    checkNames(`${file}: variables`, metric ?? fail(`${file}: ${query}`))
  }
}
if (queries.length < 50) fail(`only ${queries.length} queries`)
for (const [where, expr] of queries) checkNames(where, expr)
const plain = (expr) => expr.replaceAll('$__rate_interval', '5m').replace(/\$\w+/g, '.*')
const records = queries.map(([, expr], i) => ({ record: `query:${i}`, expr: plain(expr) }))
const file = join(work, 'queries.json') // JSON is YAML
writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboards', rules: records }] }))
const said = promtool('check', 'rules', file)
if (!said.includes(`${queries.length} rules found`)) fail(said)

// A self-test: promtool must find this broken expression.
writeFileSync(file, JSON.stringify({ groups: [{ name: 'g', rules: [{ record: 'r', expr: 'sum(' }] }] }))
if (spawnSync('promtool', ['check', 'rules', file]).status === 0) fail('promtool takes anything')
if (metricsOf('sum by (a) (rate(x_total{b="c"}[5m] offset 1h)) / on (d) group_left (e) y')
  .join() !== 'x_total,y') fail('names of metrics are not found')
console.log(`ok: ${alerts.length} alerts, ${queries.length} queries`)
