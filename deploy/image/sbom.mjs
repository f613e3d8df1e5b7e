// Prints the software bill of materials (SPDX 2.3, JSON) of an image made by deploy/image/rootfs:
//
//   node deploy/image/sbom.mjs --version 0.1.0 --arch amd64 --epoch SECONDS --digest sha256:... \
//     --rootfs DIR --lock web/package-lock.json [--built-with FILE]
//
// It names the Debian packages of the image, the npm packages that are in the dashboard and those that
// built it, and the Debian packages that nos is compiled with: FILE has a line "NAME VERSION" for each.
// The same arguments give the same text.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const text = { type: 'string' }
const { values } = parseArgs({
  options: { version: text, arch: text, epoch: text, digest: text, rootfs: text, lock: text, 'built-with': text },
})
for (const each of ['version', 'arch', 'epoch', 'digest', 'rootfs', 'lock']) {
  if (values[each] !== undefined) continue
  console.error(`error: --${each} is missing`)
  process.exit(1)
}
const { version, arch, digest } = values

const id = (kind, name, number) => `SPDXRef-${kind}-${name}-${number}`.replace(/[^A-Za-z0-9.-]+/g, '-')
function entry(spdx, name, versionInfo, purl, more = {}) {
  return {
    SPDXID: spdx,
    name,
    versionInfo,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: 'NOASSERTION',
    copyrightText: 'NOASSERTION',
    externalRefs: [
      { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl },
    ],
    ...more,
  }
}

const image = entry('SPDXRef-image', 'nos', version, `pkg:oci/nos@${encodeURIComponent(digest)}?arch=${arch}`, {
  primaryPackagePurpose: 'CONTAINER',
  checksums: [{ algorithm: 'SHA256', checksumValue: digest.replace('sha256:', '') }],
})
const program = entry('SPDXRef-nos', 'nos', version, `pkg:generic/nos@${version}`, {
  primaryPackagePurpose: 'APPLICATION',
  licenseDeclared: 'Apache-2.0',
})
const packages = [image, program]
const relationships = []
const relate = (from, relationshipType, to) =>
  relationships.push({ spdxElementId: from.SPDXID, relationshipType, relatedSpdxElement: to.SPDXID })
relate({ SPDXID: 'SPDXRef-DOCUMENT' }, 'DESCRIBES', image)
relate(image, 'CONTAINS', program)

const debian = (name, number, architecture) =>
  `pkg:deb/debian/${name}@${encodeURIComponent(number)}?arch=${architecture}&distro=debian-12`
const records = join(values.rootfs, 'libraries', 'var', 'lib', 'dpkg', 'status.d')
for (const file of readdirSync(records).sort()) {
  if (file.endsWith('.md5sums')) continue
  const record = readFileSync(join(records, file), 'utf8')
  const field = (name) => record.match(new RegExp(`^${name}: (.*)$`, 'm'))?.[1]
  const number = field('Version')
  const [source] = (field('Source') ?? file).split(' ')
  const each = entry(id('deb', file, number), file, number, debian(file, number, field('Architecture')), {
    supplier: `Organization: ${field('Maintainer')}`,
    sourceInfo: `built from the Debian source package ${source}`,
  })
  packages.push(each)
  relate(image, 'CONTAINS', each)
}

const seen = new Set()
const lock = JSON.parse(readFileSync(values.lock, 'utf8'))
for (const [path, found] of Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1))) {
  if (path === '' || found.link) continue
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const spdx = id('npm', name, found.version)
  if (seen.has(spdx)) continue
  seen.add(spdx)
  const purl = `pkg:npm/${name.replace('@', '%40')}@${found.version}`
  const each = entry(spdx, name, found.version, purl, { licenseDeclared: found.license ?? 'NOASSERTION' })
  const [algorithm, value] = (found.integrity ?? '').split(' ')[0].split(/-(.*)/)
  if (algorithm === 'sha512') {
    const checksumValue = Buffer.from(value, 'base64').toString('hex')
    each.checksums = [{ algorithm: 'SHA512', checksumValue }]
  }
  packages.push(each)
  if (found.dev || found.devOptional) relate(each, 'BUILD_DEPENDENCY_OF', program)
  else relate(program, 'CONTAINS', each)
}

if (values['built-with']) {
  for (const line of readFileSync(values['built-with'], 'utf8').split('\n').filter(Boolean).sort()) {
    const [name, number] = line.split(' ')
    const each = entry(id('build', name, number), name, number, debian(name, number, arch))
    packages.push(each)
    relate(each, 'BUILD_DEPENDENCY_OF', program)
  }
}

const hash = createHash('sha256').update(digest + arch + version).digest('hex')
const uuid = [hash.slice(0, 8), hash.slice(8, 12), `5${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`, hash.slice(20, 32)]
console.log(JSON.stringify({
  spdxVersion: 'SPDX-2.3',
  dataLicense: 'CC0-1.0',
  SPDXID: 'SPDXRef-DOCUMENT',
  name: `nos-${version}-${arch}`,
  documentNamespace: `urn:uuid:${uuid.join('-')}`,
  creationInfo: {
    created: new Date(Number(values.epoch) * 1000).toISOString().replace('.000Z', 'Z'),
    creators: ['Tool: nos/deploy/image/sbom.mjs'],
  },
  packages,
  relationships,
}, null, 1))
