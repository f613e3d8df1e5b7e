// The pages of the repository fit together and fit the program: links and anchors lead somewhere, the
// subcommands and flags of `nos` exist, scripts know their flags, files exist, and the chart has the values.
// It runs no command of a page; docs_test.sh types those.
//
//   node docs_links_test.mjs ROOT NOS...      NOS: the programs, each by its name (nos, nos-study)
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'

const [root, ...programs] = process.argv.slice(2)
let failures = 0
const counts = {}
const fail = (where, text) => { console.error(`FAILED: ${where}: ${text}`); ++failures }
const count = (what) => { counts[what] = (counts[what] ?? 0) + 1 }
const read = (path) => readFileSync(join(root, path), 'utf8')

// Files of git, and those that will be.
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--deduplicate'], { cwd: root, encoding: 'utf8' })
  .split('\n').filter((path) => path !== '' && existsSync(join(root, path)))
const pages = files.filter((path) => path.endsWith('.md'))

// --- A page: its headings, its text without code, and its blocks of code ---
function parse(text) {
  const page = { anchors: new Set(), prose: [], blocks: [] }
  const seen = new Map()
  let block = null, fence = '', before = '', list = false
  text.split('\n').forEach((line, index) => {
    const mark = /^\s*(```+)(.*)$/.exec(line)
    if (fence !== '') {
      if (mark !== null && mark[1] === fence && mark[2].trim() === '') { fence = ''; block = null } else block.lines.push(line)
    } else if (mark !== null) {
      fence = mark[1]
      page.blocks.push(block = { start: index + 1, kind: mark[2].trim(), lines: [] })
    } else if (/^(\t| {4})/.test(line) && (block !== null || (before.trim() === '' && (!list || /^ {6}/.test(line))))) {
      if (block === null) page.blocks.push(block = { start: index + 1, kind: '', lines: [] })
      block.lines.push(line.replace(/^ +/, (blank) => blank.slice(Math.min(blank.length, list ? 6 : 4))))
    } else if (line.trim() === '' && block !== null) {
      block.lines.push('')
    } else {
      block = null
      if (line.trim() !== '') list = /^\s*([-*]|\d+\.) /.test(line) || (list && /^ /.test(line))
      page.prose.push({ number: index + 1, line })
      const heading = /^#{1,6} (.*?)#*$/.exec(line)
      if (heading !== null) {
        const slug = heading[1].trim().replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
        const times = seen.get(slug) ?? 0
        seen.set(slug, times + 1)
        page.anchors.add(times === 0 ? slug : `${slug}-${times}`)
      }
    }
    before = line
  })
  return page
}
const parsed = new Map(pages.map((path) => [path, parse(read(path))]))

// --- Links ---
for (const [path, page] of parsed) {
  const text = page.prose.map(({ line }) => line).join('\n').replace(/`[^`]*`/g, '`')
  for (const [, target] of text.matchAll(/\]\(([^()\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    count('links')
    const [file, anchor] = target.split('#')
    const to = file === '' ? path : normalize(join(dirname(path), file))
    if (!existsSync(join(root, to))) {
      fail(path, `there is no ${to}`)
    } else if (anchor !== undefined) {
      const there = parsed.get(to)
      if (there === undefined) fail(path, `${to} has no headings, so no #${anchor}`)
      else if (!there.anchors.has(anchor)) fail(path, `${to} has no heading #${anchor}`)
    }
  }
}
// The index of docs/ has each of its pages.
for (const path of pages.filter((name) => /^docs\/[^/]+\.md$/.test(name) && name !== 'docs/README.md')) {
  if (!read('docs/README.md').includes(`(${basename(path)}`)) fail('docs/README.md', `leaves ${path} out`)
}
// Pages that programs, charts and scripts name.
for (const path of files.filter((name) => /^(src|study|deploy|script|web\/src|bench|cmake)\//.test(name) && !/\.(png|ico|svg|woff2)$/.test(name))) {
  if (statSync(join(root, path)).isDirectory()) continue
  for (const [, page, anchor] of read(path).matchAll(/\b(docs\/[a-z0-9/-]+\.md)(?:#([a-z0-9-]+))?/g)) {
    count('pages named elsewhere')
    if (!parsed.has(page)) fail(path, `there is no ${page}`)
    else if (anchor !== undefined && !parsed.get(page).anchors.has(anchor)) fail(path, `${page} has no heading #${anchor}`)
  }
}

// --- Commands ---
// The commands of a block, each as one line. Output of commands and YAML are none.
function commandsOf(block) {
  if (/^(yaml|json|text|cpp|c\+\+)\b/.test(block.kind)) return []
  const prompted = block.kind.startsWith('console')
  const commands = []
  let open = false
  for (const raw of block.lines) {
    let line = raw
    if (prompted && !open) {
      if (!/^[$#] /.test(line)) continue
      line = line.slice(2)
    }
    if (prompted && open) line = line.replace(/^> /, '')
    if (open) commands[commands.length - 1] += ` ${line.replace(/\\$/, '').trim()}`
    else commands.push(line.replace(/\\$/, '').trim())
    open = line.endsWith('\\')
  }
  return commands
}
// The words of each simple command of a line. No shell: quotes group, comments end.
function simple(line) {
  const words = line.replace(/(^|\s)#\s.*$/, '').match(/'[^']*'|"[^"]*"|\$\([^)]*\)|[|;&<>]+|[^\s|;&<>'"]+(?:'[^']*'|"[^"]*")?/g) ?? []
  const all = [[]]
  for (const word of words) {
    if (/^[|;&]+$/.test(word)) all.push([])
    else all.at(-1).push(word)
  }
  return all.filter((command) => command.length > 0)
}
const helps = new Map()
function help(program, subcommands) {
  const key = [program, ...subcommands].join(' ')
  if (!helps.has(key)) {
    const ran = spawnSync(program, [...subcommands, '--help'], { encoding: 'utf8' })
    helps.set(key, ran.status === 0 ? ran.stdout : null)
  }
  return helps.get(key)
}
const known = new Map(programs.map((program) => [basename(program), program]))
// The subcommands that a help lists, with their other names: "  gpus, gpu      List GPUs".
function subcommandsOf(text) {
  const list = /^Subcommands:\n((?:.+\n)*)/m.exec(text)?.[1] ?? ''
  return new Map([...list.matchAll(/^  ([^\s,]+(?:, [^\s,]+)*)/gm)].flatMap(([, names]) => names.split(', ').map((name) => [name, names.split(', ')[0]])))
}
function checkProgram(where, [name, ...words]) {
  const program = known.get(basename(name))
  count('commands of nos')
  const subcommands = []
  for (const word of words) {
    const list = subcommandsOf(help(program, subcommands) ?? '')
    if (list.size === 0 || !/^[a-z][a-z-]*$/.test(word)) break
    if (!list.has(word) && word !== 'help') return fail(where, `there is no command ${[basename(name), ...subcommands, word].join(' ')}`)
    if (word === 'help') return
    subcommands.push(list.get(word))
  }
  const text = help(program, subcommands)
  if (text === null) return fail(where, `${basename(name)} ${subcommands.join(' ')} has no help`)
  for (const word of words) {
    const flag = /^(--?[a-z][a-z-]*)/.exec(word)?.[1]
    if (flag === undefined || flag === '--help' || flag === '--version') continue
    count('flags of nos')
    if (!new RegExp(`(^|[\\s,])${flag}(?![a-z-])`, 'm').test(text)) {
      fail(where, `${basename(name)} ${subcommands.join(' ')} has no flag ${flag}`)
    }
  }
}
function checkScript(where, [name, ...words]) {
  count('scripts')
  if (!existsSync(join(root, name))) return fail(where, `there is no ${name}`)
  const text = read(name)
  for (const word of words) {
    const flag = /^(--[a-z][a-z-]*)/.exec(word)?.[1]
    // script/up passes its arguments on, and script/image those after the name to the engine.
    if (flag === undefined || flag === '--help' || name === 'script/up' || (name === 'script/image' && flag === '--build-arg')) continue
    if (!text.includes(flag)) fail(where, `${name} knows no ${flag}`)
  }
}

// --- Values of the chart ---
const schema = JSON.parse(read('deploy/helm/nos/values.schema.json'))
function hasValue(key) {
  let at = [schema]
  for (const part of key.replace(/\\\./g, '\0').replace(/\[\d+\]/g, '.0').split('.')) {
    const name = part.replace(/\0/g, '.')
    const next = []
    for (let one of at) {
      while (one.$ref) one = one.$ref.slice(2).split('/').reduce((node, step) => node[step], schema)
      for (const option of [one, ...(one.anyOf ?? []), ...(one.oneOf ?? []), ...(one.allOf ?? [])]) {
        const found = option.properties?.[name]
        if (found !== undefined) next.push(found === true ? {} : found)
        else if (option.items !== undefined && /^\d+$/.test(name)) next.push(option.items)
        else if (typeof option.additionalProperties === 'object') next.push(option.additionalProperties)
        else if (option.properties === undefined && option.additionalProperties !== false && option === one) return true
      }
    }
    if (next.length === 0) return false
    at = next
  }
  return true
}
if (hasValue('gpuPartitioner.nonsense') || !hasValue('gpuPartitioner.migAgent.mps.enabled')) fail('values.schema.json', 'was not understood')
function checkHelm(where, words) {
  const ours = words.some((word) => /^(deploy\/helm\/nos|nos|oci:\/\/\S+\/charts\/nos|nos-\S+\.tgz)$/.test(word))
  if (!ours || words.includes('gpu-operator') || words.includes('uninstall')) return
  words.forEach((word, i) => {
    if (!/^--set(-string|-json|-file)?$/.test(words[i - 1] ?? '')) return
    for (const pair of word.replace(/^['"]|['"]$/g, '').split(/(?<!\\),(?![^{]*\})/)) {
      count('values')
      const key = pair.split('=')[0]
      if (!hasValue(key)) fail(where, `the chart has no value ${key}`)
    }
  })
}
// Values in a block of YAML that begins with one of the chart's: the keys by their indentation.
const own = new Set(Object.keys(schema.properties))
function checkYaml(where, lines) {
  const first = lines.find((line) => line.trim() !== '' && !/^\s*#/.test(line))
  const top = /^([A-Za-z]+):/.exec(first ?? '')?.[1]
  if (!own.has(top) || lines.some((line) => /^(apiVersion|kind):/.test(line))) return
  const path = []
  let list = Infinity // the indentation of the list whose items are being passed over
  for (const line of lines) {
    if (/^(---|spec:|metadata:)/.test(line)) break // another object
    const indent = line.search(/\S/)
    if (/^ *- /.test(line)) list = indent
    if (indent === -1 || /^ *-/.test(line) || indent > list) continue
    list = Infinity
    const key = /^ *([A-Za-z]\w*):/.exec(line)?.[1]
    if (key === undefined) continue
    while (path.length > 0 && path.at(-1).indent >= indent) path.pop()
    path.push({ indent, key })
    count('values')
    const name = path.map((one) => one.key).join('.')
    if (!hasValue(name)) fail(where, `the chart has no value ${name}`)
  }
}
// Objects of the installation that kubectl commands name.
const installed = files.filter((path) => /^deploy\/(kustomize\/.*|helm\/nos\/templates\/.*)\.ya?ml$/.test(path)).map(read).join('\n')
function checkKubectl(where, words) {
  for (const [, name] of words.join(' ').matchAll(/\b(?:deploy|deployment|ds|daemonset|statefulset|svc|service|configmap|lease|clusterrole)[/ ]nos-([a-z-]+)/g)) {
    count('objects')
    if (!new RegExp(`name: nos-${name}$|fullname[^\n]*}}-${name}$|"${name}"`, 'm').test(installed)) fail(where, `nothing installed is named nos-${name}`)
  }
}
function checkPaths(where, words) {
  for (const word of words) {
    for (const [, path] of word.matchAll(/(?:^|[="'])((?:deploy\/[a-z]+|examples|script|test|docs|nos\/platforms)\/[\w./-]+)/g)) {
      if (/\/\/|\.\.\.|[A-Z]{3}/.test(word)) continue
      count('paths')
      const real = path.replace(/^nos\/platforms/, 'deploy/helm/nos/platforms').replace(/\/$/, '')
      if (![real, `${real}.yaml`].some((name) => existsSync(join(root, name)))) fail(where, `there is no ${path}`)
    }
  }
}
function check(where, line) {
  for (const command of simple(line)) {
    while (/^[A-Z_]+=/.test(command[0] ?? '') || command[0] === 'sudo' || command[0] === 'exec') command.shift()
    const [name = ''] = command
    if (name === 'kubectl' && command[1] === 'nos') command.shift()
    if (known.has(basename(command[0] ?? '')) && /^(build\/release\/)?[a-z-]+$/.test(command[0])) checkProgram(where, command)
    else if (/^script\/[a-z]+$/.test(name)) checkScript(where, command)
    else if (name === 'helm') checkHelm(where, command)
    else if (name === 'kubectl') checkKubectl(where, command)
    if (/^[a-z./]/.test(name)) checkPaths(where, command)
  }
}
// Old names, which the page about upgrades lists, and other programs' manuals.
const history = /^(docs\/upgrading|docs\/decisions\/|CHANGELOG|study\/decisions)/
for (const [path, page] of parsed) {
  if (!/^(README|CONTRIBUTING|BENCHMARKS|ARCHITECTURE|docs\/|test\/.*README|examples\/|web\/README)/.test(path) || history.test(path)) continue
  for (const block of page.blocks) {
    for (const line of commandsOf(block)) check(`${path}:${block.start}`, line)
    checkYaml(`${path}:${block.start}`, block.lines)
  }
  const text = page.prose.map(({ line }) => line).join('\n')
  for (const [, code] of text.matchAll(/`([^`]+)`/g)) {
    const line = code.replace(/\s+/g, ' ').replace(/\\\|/g, '\0')
    if (/^(kubectl )?nos [a-z]/.test(line) && !line.includes('\0')) check(path, line)
    const key = /^(?:gpuPartitioner\.)?(migAgent(?:\.[A-Za-z]+)+)(?:[:=].*)?$/.exec(line)?.[1]
    if (key !== undefined) {
      count('values')
      if (!hasValue(`gpuPartitioner.${key}`)) fail(path, `the chart has no value gpuPartitioner.${key}`)
    }
  }
}

for (const [what, least] of [['links', 300], ['commands of nos', 60], ['flags of nos', 40], ['values', 80], ['paths', 20], ['scripts', 20], ['objects', 5], ['pages named elsewhere', 20]]) {
  if ((counts[what] ?? 0) < least) fail('self-test', `only ${counts[what] ?? 0} ${what} were found`)
}
console.log(`${failures === 0 ? 'ok' : `${failures} failures`}: ${Object.entries(counts).map(([what, number]) => `${number} ${what}`).join(', ')}`)
process.exit(failures === 0 ? 0 : 1)
