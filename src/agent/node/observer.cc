#include "agent/node/observer.h"

#include <algorithm>
#include <utility>

#include "device/health.h"

namespace nos::agent {

Observer::Observer(std::string node, const gpu::Catalogue& catalogue, device::Backend& backend,
                   kubelet::PodResources& pod_resources, Options options)
    : node_(std::move(node)),
      catalogue_(catalogue),
      backend_(backend),
      pod_resources_(pod_resources),
      options_(options) {}

std::shared_ptr<const cluster::Node> Observer::CachedNode(const reconcile::Listers& view) {
  return written_.Newest(view.nodes.Get(node_));
}

Result<NodeAndPods> Observer::ReadUncached(kube::Client& client) {
  NOS_ASSIGN(const Json object, client.Get(kube::kNodes, "", node_));
  NOS_ASSIGN(cluster::Node node, cluster::DecodeNode(object));
  NodeAndPods fresh{std::make_shared<const cluster::Node>(std::move(node)), {}};
  written_.Wrote(fresh.node);
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node_;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, "", options));
  for (const Json& item : list.items) {
    Result<cluster::Pod> pod = cluster::DecodePod(item);
    if (pod.ok()) {
      fresh.pods.push_back(std::make_shared<const cluster::Pod>(std::move(pod).value()));
    }
  }
  return fresh;
}

Result<NodeDevices> Observer::ReadDevices(const SharingSettings& settings,
                                          std::span<const std::shared_ptr<const cluster::Pod>> pods,
                                          bool healthy, Time now) {
  backend_.GiveWhole(settings.hybrid);
  NOS_ASSIGN(NodeDevices devices, Observe(backend_, pod_resources_, catalogue_, settings));
  unreadable_may_return_ = KeepUnreadable(devices, last_read_, healthy, options_.unreadable, now);
  if (options_.health != nullptr) Mark(devices, options_.health->Conditions());
  holders_ = RestoreHolders(devices, holders_, pods, now);
  return devices;
}

void Observer::Forget(int gpu, const std::string& uuid) {
  const auto known = last_read_.find(gpu);
  if (known == last_read_.end()) return;
  std::erase_if(known->second.first.instances,
                [&](const device::GpuInstance& instance) { return instance.uuid == uuid; });
}

}  // namespace nos::agent
