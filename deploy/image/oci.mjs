// Writes file systems of deploy/image/rootfs as one OCI image, for one architecture or several:
//
//   node deploy/image/oci.mjs OUT --name nos:0.1.0 --epoch SECONDS --label KEY=VALUE... ARCH=ROOTFS...
//
// OUT becomes a folder in the OCI image layout. The same files and
// arguments give the same bytes: entries are sorted, owned by root, and none is younger than --epoch.
// Prints "index DIGEST", and "ARCH DIGEST" for each architecture.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    name: { type: 'string' },
    epoch: { type: 'string' },
    label: { type: 'string', multiple: true, default: [] },
  },
})
const [out, ...images] = positionals
const epoch = Number(values.epoch)
if (!out || images.length === 0 || !values.name || !Number.isInteger(epoch)) {
  console.error('error: usage: oci.mjs OUT --name NAME:TAG --epoch SECONDS [--label K=V] ARCH=ROOTFS...')
  process.exit(1)
}
const split = (text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]
const labels = Object.fromEntries(values.label.map(split))
const created = new Date(epoch * 1000).toISOString().replace('.000Z', 'Z')
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')
const blobs = join(out, 'blobs', 'sha256')
rmSync(out, { recursive: true, force: true })
mkdirSync(blobs, { recursive: true })

function store(bytes, mediaType) {
  const digest = sha256(bytes)
  writeFileSync(join(blobs, digest), bytes)
  return { mediaType, digest: `sha256:${digest}`, size: bytes.length }
}
const storeJson = (value, mediaType) => store(Buffer.from(JSON.stringify(value)), mediaType)

// The tar as it is unpacked (its digest goes into the configuration) and compressed.
function layer(folder) {
  const options = { maxBuffer: 2 ** 31, env: { ...process.env, LC_ALL: 'C' } }
  const tar = execFileSync('tar', ['--create', '--directory', folder, '--sort=name', '--format=gnu',
    '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${epoch}`, '.'], options)
  return { tar, packed: execFileSync('gzip', ['-9', '-n'], { ...options, input: tar }) }
}

function image(arch, rootfs) {
  const layers = ['libraries', 'program'].filter((each) => existsSync(join(rootfs, each)))
  const parts = layers.map((each) => layer(join(rootfs, each)))
  const config = {
    created,
    architecture: arch,
    os: 'linux',
    config: {
      // The user of all components except the agent, whose pod requests root.
      User: '65532:65532',
      Env: ['PATH=/usr/local/bin:/usr/bin:/bin', 'HOME=/home/nos'],
      Entrypoint: ['/usr/local/bin/nos'],
      WorkingDir: '/home/nos',
      Labels: labels,
    },
    rootfs: { type: 'layers', diff_ids: parts.map(({ tar }) => `sha256:${sha256(tar)}`) },
    history: layers.map((each) => ({ created, created_by: `deploy/image/rootfs (${each})` })),
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: storeJson(config, 'application/vnd.oci.image.config.v1+json'),
    layers: parts.map(({ packed }) => store(packed, 'application/vnd.oci.image.layer.v1.tar+gzip')),
    annotations: labels,
  }
  return { ...storeJson(manifest, manifest.mediaType), platform: { architecture: arch, os: 'linux' } }
}

const manifests = images.map(split).map(([arch, rootfs]) => {
  statSync(join(rootfs, 'program'))
  return image(arch, rootfs)
})
const index = {
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.index.v1+json',
  manifests,
  annotations: labels,
}
// The layout's own index names the image, so that docker load and ctr import call it so.
const whole = {
  ...storeJson(index, index.mediaType),
  annotations: {
    'io.containerd.image.name': values.name,
    'org.opencontainers.image.ref.name': values.name.slice(values.name.lastIndexOf(':') + 1),
  },
}
// Older engines load archives of docker's own form, which holds one architecture.
const [first] = manifests
const { config, layers } = JSON.parse(readFileSync(join(blobs, first.digest.replace('sha256:', '')), 'utf8'))
const path = ({ digest }) => `blobs/${digest.replace(':', '/')}`
writeFileSync(join(out, 'manifest.json'),
  JSON.stringify([{ Config: path(config), RepoTags: [values.name], Layers: layers.map(path) }]))
writeFileSync(join(out, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
writeFileSync(join(out, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [whole] }))
console.log(`index ${whole.digest}`)
for (const each of manifests) console.log(`${each.platform.architecture} ${each.digest}`)
