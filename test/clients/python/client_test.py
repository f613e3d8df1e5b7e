"""Drives `nos sandbox` with the official Python client: list, watch, create, all kinds of patch, delete.

    client_test.py KUBECONFIG
"""

import sys

from kubernetes import client, config, watch

NAMESPACE = "default"
QUOTAS = {"group": "nos.nebuly.com", "version": "v1alpha1", "namespace": NAMESPACE, "plural": "elasticquotas"}
PATCHES = [
    ("application/merge-patch+json", {"metadata": {"labels": {"step": "merge"}}}),
    ("application/strategic-merge-patch+json", {"metadata": {"labels": {"step": "strategic"}}}),
    ("application/json-patch+json", [{"op": "replace", "path": "/metadata/labels/step", "value": "json"}]),
]


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def patch_in_all_ways(patch, read, kind, custom=False):
    """`patch(body)` and `read()` are calls of the typed client."""
    for media, body in PATCHES:
        if custom and "strategic" in media:
            continue
        patch(body, _content_type=media)
        labels = read()["metadata"]["labels"] if custom else read().metadata.labels
        wanted = media.split("/")[1].split("-")[0]
        check(labels["step"] == wanted, f"{kind}: {media} gives {labels}")


def apply(patch, read, body):
    patch(body, field_manager="test", force=True, _content_type="application/apply-patch+yaml")
    labels = read().metadata.labels
    check(labels["applied"] == "yes", f"apply gives {labels}")


def nodes(core):
    found = core.list_node().items
    check(found, "no nodes")
    for node in found:
        check(isinstance(node.status.node_info.machine_id, str), "nodeInfo.machineID is no string")
        for name, amount in node.status.capacity.items():
            check(isinstance(amount, str), f"capacity[{name}] is {amount!r}")
    core.create_node({
        "metadata": {"name": "extra"},
        "status": {"capacity": {"cpu": "4000m", "memory": "2048Mi", "example.com/a": "0.5"}},
    })
    extra = core.read_node("extra")
    check(extra.status.capacity == {"cpu": "4", "memory": "2Gi", "example.com/a": "500m"}, extra.status.capacity)
    check(extra.status.node_info.kernel_version == "", "nodeInfo.kernelVersion")
    patch_in_all_ways(lambda body, **more: core.patch_node("extra", body, **more),
                      lambda: core.read_node("extra"), "node")
    apply(lambda body, **more: core.patch_node("extra", body, **more), lambda: core.read_node("extra"),
          {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "extra", "labels": {"applied": "yes"}}})
    check([n.metadata.name for n in core.list_node(label_selector="step=json").items] == ["extra"], "label selector")
    core.delete_node("extra")
    check("extra" not in [n.metadata.name for n in core.list_node().items], "the node is still there")


def pods(core):
    core.create_namespaced_pod(NAMESPACE, {
        "metadata": {"name": "p", "labels": {"app": "p"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/mig-1g.5gb": "1", "cpu": "0.5"}}}]},
    })
    limits = core.read_namespaced_pod("p", NAMESPACE).spec.containers[0].resources.limits
    check(limits == {"nvidia.com/mig-1g.5gb": "1", "cpu": "500m"}, limits)
    stream = watch.Watch()
    for event in stream.stream(core.list_namespaced_pod, NAMESPACE, label_selector="app=p", timeout_seconds=120):
        check(event["object"].metadata.name == "p", "an event of another pod")
        if event["object"].status.phase == "Running":
            stream.stop()
    pod = core.read_namespaced_pod("p", NAMESPACE)
    check(pod.status.phase == "Running", f"the pod is {pod.status.phase}")
    check(pod.status.container_statuses[0].ready, "the container is not ready")
    check("device nvidia.com/mig-1g.5gb" in core.read_namespaced_pod_log("p", NAMESPACE), "log")
    patch_in_all_ways(lambda body, **more: core.patch_namespaced_pod("p", NAMESPACE, body, **more),
                      lambda: core.read_namespaced_pod("p", NAMESPACE), "pod")
    apply(lambda body, **more: core.patch_namespaced_pod("p", NAMESPACE, body, **more),
          lambda: core.read_namespaced_pod("p", NAMESPACE),
          {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"applied": "yes"}}})
    version = core.list_namespaced_pod(NAMESPACE).metadata.resource_version
    core.delete_namespaced_pod("p", NAMESPACE)
    stream = watch.Watch()
    seen = []
    for event in stream.stream(core.list_namespaced_pod, NAMESPACE, resource_version=version, timeout_seconds=120):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    check(seen[-1:] == ["DELETED"], seen)


def resource_quotas(core):
    core.create_namespaced_resource_quota(NAMESPACE, {
        "metadata": {"name": "q"}, "spec": {"hard": {"pods": "10", "requests.cpu": "1000m"}}})
    quota = core.read_namespaced_resource_quota("q", NAMESPACE)
    check(quota.spec.hard == {"pods": "10", "requests.cpu": "1"}, quota.spec.hard)
    patch_in_all_ways(lambda body, **more: core.patch_namespaced_resource_quota("q", NAMESPACE, body, **more),
                      lambda: core.read_namespaced_resource_quota("q", NAMESPACE), "resource quota")
    core.delete_namespaced_resource_quota("q", NAMESPACE)
    check(not core.list_namespaced_resource_quota(NAMESPACE).items, "the quota is still there")


def elastic_quotas(custom):
    custom.create_namespaced_custom_object(body={
        "apiVersion": "nos.nebuly.com/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": "e"},
        "spec": {"min": {"nos.nebuly.com/gpu-memory": 10}}}, **QUOTAS)
    read = lambda: custom.get_namespaced_custom_object(name="e", **QUOTAS)
    # The server stores quantities of custom resources as they were sent.
    check(read()["spec"]["min"] == {"nos.nebuly.com/gpu-memory": 10}, read())
    patch_in_all_ways(lambda body, **more: custom.patch_namespaced_custom_object(name="e", body=body, **QUOTAS, **more),
                      read, "elastic quota", custom=True)
    check(len(custom.list_namespaced_custom_object(**QUOTAS)["items"]) == 1, "list of elastic quotas")
    custom.delete_namespaced_custom_object(name="e", **QUOTAS)
    check(not custom.list_namespaced_custom_object(**QUOTAS)["items"], "the elastic quota is still there")


def claims(resource):
    resource.create_namespaced_resource_claim(NAMESPACE, {
        "metadata": {"name": "r"}, "spec": {"devices": {"requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}})
    claim = resource.read_namespaced_resource_claim("r", NAMESPACE)
    check(claim.spec.devices.requests[0].exactly.count == 1, claim.spec)
    patch_in_all_ways(lambda body, **more: resource.patch_namespaced_resource_claim("r", NAMESPACE, body, **more),
                      lambda: resource.read_namespaced_resource_claim("r", NAMESPACE), "claim")
    resource.delete_namespaced_resource_claim("r", NAMESPACE)
    check(not resource.list_namespaced_resource_claim(NAMESPACE).items, "the claim is still there")


def deployments(apps):
    apps.create_namespaced_deployment(NAMESPACE, {
        "metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d"}},
                                            "template": {"metadata": {"labels": {"app": "d"}},
                                                         "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    stream = watch.Watch()
    for event in stream.stream(apps.list_namespaced_deployment, NAMESPACE, timeout_seconds=120):
        if event["object"].status.available_replicas == 2:
            stream.stop()
    check(apps.read_namespaced_deployment("d", NAMESPACE).status.available_replicas == 2, "deployment")
    apps.patch_namespaced_deployment_scale("d", NAMESPACE, {"spec": {"replicas": 0}})
    check(apps.read_namespaced_deployment_scale("d", NAMESPACE).spec.replicas == 0, "scale")
    apps.delete_namespaced_deployment("d", NAMESPACE)


def main():
    config.load_kube_config(sys.argv[1])
    nodes(client.CoreV1Api())
    pods(client.CoreV1Api())
    resource_quotas(client.CoreV1Api())
    elastic_quotas(client.CustomObjectsApi())
    claims(client.ResourceV1Api())
    deployments(client.AppsV1Api())
    print("passed")


main()
