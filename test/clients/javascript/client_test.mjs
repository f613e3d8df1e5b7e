// Drives `nos sandbox` with the official JavaScript client: list, watch, create, all kinds of patch, delete.
//
//   node client_test.mjs KUBECONFIG
import assert from "node:assert/strict";
import * as k8s from "@kubernetes/client-node";

const namespace = "default";
const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
// This client refuses HTTP otherwise.
config.getCurrentCluster().skipTLSVerify = true;
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const claims = config.makeApiClient(k8s.ResourceV1Api);

const patches = {
  merge: [k8s.PatchStrategy.MergePatch, { metadata: { labels: { step: "merge" } } }],
  strategic: [k8s.PatchStrategy.StrategicMergePatch, { metadata: { labels: { step: "strategic" } } }],
  json: [k8s.PatchStrategy.JsonPatch, [{ op: "replace", path: "/metadata/labels/step", value: "json" }]],
};

async function patchInAllWays(patch, read, without = []) {
  for (const [step, [media, body]] of Object.entries(patches)) {
    if (without.includes(step)) continue;
    await patch(body, k8s.setHeaderOptions("Content-Type", media));
    assert.equal((await read()).metadata.labels.step, step);
  }
}

// Resolves with the first object of which `enough(type, object)` holds.
function watchFor(path, query, enough) {
  return new Promise((resolve, reject) => {
    let controller;
    const timer = setTimeout(() => end(reject, new Error(`nothing came from ${path} in two minutes`)), 120_000);
    const end = (how, what) => {
      clearTimeout(timer);
      controller?.then((c) => c.abort());
      how(what);
    };
    controller = new k8s.Watch(config).watch(
      path,
      query,
      (type, object) => enough(type, object) && end(resolve, object),
      (error) => error && end(reject, error),
    );
  });
}

async function nodes() {
  const { items } = await core.listNode();
  assert.ok(items.length > 0);
  for (const node of items) {
    assert.equal(typeof node.status.nodeInfo.machineID, "string");
    for (const amount of Object.values(node.status.capacity)) assert.equal(typeof amount, "string");
  }
  await core.createNode({ body: { metadata: { name: "extra" }, status: { capacity: { cpu: 4, memory: "2048Mi" } } } });
  const extra = await core.readNode({ name: "extra" });
  assert.deepEqual(extra.status.capacity, { cpu: "4", memory: "2Gi" });
  await patchInAllWays(
    (body, options) => core.patchNode({ name: "extra", body }, options),
    () => core.readNode({ name: "extra" }),
  );
  const apply = { apiVersion: "v1", kind: "Node", metadata: { name: "extra", labels: { applied: "yes" } } };
  await core.patchNode(
    { name: "extra", body: apply, fieldManager: "test", force: true },
    k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.ServerSideApply),
  );
  assert.equal((await core.readNode({ name: "extra" })).metadata.labels.applied, "yes");
  const found = await core.listNode({ labelSelector: "step=json" });
  assert.deepEqual(
    found.items.map((node) => node.metadata.name),
    ["extra"],
  );
  await core.deleteNode({ name: "extra" });
}

async function pods() {
  const container = { name: "c", image: "i", resources: { limits: { "nvidia.com/mig-1g.5gb": 1, cpu: 0.5 } } };
  await core.createNamespacedPod({
    namespace,
    body: { metadata: { name: "p", labels: { app: "p" } }, spec: { containers: [container], terminationGracePeriodSeconds: 1 } },
  });
  const created = await core.readNamespacedPod({ namespace, name: "p" });
  assert.deepEqual(created.spec.containers[0].resources.limits, { "nvidia.com/mig-1g.5gb": "1", cpu: "500m" });
  const path = `/api/v1/namespaces/${namespace}/pods`;
  await watchFor(path, { labelSelector: "app=p" }, (type, pod) => pod.status?.phase === "Running");
  const log = await core.readNamespacedPodLog({ namespace, name: "p" });
  assert.match(log, /device nvidia.com\/mig-1g.5gb/);
  await patchInAllWays(
    (body, options) => core.patchNamespacedPod({ namespace, name: "p", body }, options),
    () => core.readNamespacedPod({ namespace, name: "p" }),
  );
  const gone = watchFor(path, { labelSelector: "app=p" }, (type) => type === "DELETED");
  await core.deleteNamespacedPod({ namespace, name: "p" });
  await gone;
}

async function resourceQuotas() {
  await core.createNamespacedResourceQuota({ namespace, body: { metadata: { name: "q" }, spec: { hard: { pods: 10 } } } });
  const quota = await core.readNamespacedResourceQuota({ namespace, name: "q" });
  assert.deepEqual(quota.spec.hard, { pods: "10" });
  await patchInAllWays(
    (body, options) => core.patchNamespacedResourceQuota({ namespace, name: "q", body }, options),
    () => core.readNamespacedResourceQuota({ namespace, name: "q" }),
  );
  await core.deleteNamespacedResourceQuota({ namespace, name: "q" });
  assert.equal((await core.listNamespacedResourceQuota({ namespace })).items.length, 0);
}

async function elasticQuotas() {
  const kind = { group: "nos.nebuly.com", version: "v1alpha1", namespace, plural: "elasticquotas" };
  const body = {
    apiVersion: "nos.nebuly.com/v1alpha1",
    kind: "ElasticQuota",
    metadata: { name: "e" },
    spec: { min: { "nos.nebuly.com/gpu-memory": 10 } },
  };
  await custom.createNamespacedCustomObject({ ...kind, body });
  const read = () => custom.getNamespacedCustomObject({ ...kind, name: "e" });
  assert.deepEqual((await read()).spec.min, { "nos.nebuly.com/gpu-memory": 10 });
  await patchInAllWays((patch, options) => custom.patchNamespacedCustomObject({ ...kind, name: "e", body: patch }, options), read, [
    "strategic",
  ]);
  assert.equal((await custom.listNamespacedCustomObject(kind)).items.length, 1);
  await custom.deleteNamespacedCustomObject({ ...kind, name: "e" });
  assert.equal((await custom.listNamespacedCustomObject(kind)).items.length, 0);
}

async function resourceClaims() {
  const requests = [{ name: "gpu", exactly: { deviceClassName: "gpu.nvidia.com" } }];
  await claims.createNamespacedResourceClaim({ namespace, body: { metadata: { name: "r" }, spec: { devices: { requests } } } });
  const claim = await claims.readNamespacedResourceClaim({ namespace, name: "r" });
  assert.equal(claim.spec.devices.requests[0].exactly.count, 1);
  await patchInAllWays(
    (body, options) => claims.patchNamespacedResourceClaim({ namespace, name: "r", body }, options),
    () => claims.readNamespacedResourceClaim({ namespace, name: "r" }),
  );
  await claims.deleteNamespacedResourceClaim({ namespace, name: "r" });
  assert.equal((await claims.listNamespacedResourceClaim({ namespace })).items.length, 0);
}

async function deployments() {
  const template = { metadata: { labels: { app: "d" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  const spec = { replicas: 2, selector: { matchLabels: { app: "d" } }, template };
  await apps.createNamespacedDeployment({ namespace, body: { metadata: { name: "d" }, spec } });
  await watchFor(`/apis/apps/v1/namespaces/${namespace}/deployments`, {}, (type, d) => d.status?.availableReplicas === 2);
  await apps.patchNamespacedDeploymentScale(
    { namespace, name: "d", body: { spec: { replicas: 0 } } },
    k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch),
  );
  assert.equal((await apps.readNamespacedDeploymentScale({ namespace, name: "d" })).spec.replicas ?? 0, 0);
  await apps.deleteNamespacedDeployment({ namespace, name: "d" });
}

await nodes();
await pods();
await resourceQuotas();
await elasticQuotas();
await resourceClaims();
await deployments();
console.log("passed");
