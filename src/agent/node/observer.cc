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
  std::shared_ptr<const cluster::Node> cached = view.nodes.Get(node_);
  const bool newer =
      cached != nullptr && written_ != nullptr && cached->meta.uid == written_->meta.uid &&
      !kube::NotNewer(written_->meta.resource_version, cached->meta.resource_version);
  if (newer) return written_;
  written_ = nullptr;
  return cached;
}

Result<NodeAndPods> Observer::ReadUncached(kube::Client& client) {
  NOS_ASSIGN(const Json object, client.Get(kube::kNodes, "", node_));
  NOS_ASSIGN(cluster::Node node, cluster::DecodeNode(object));
  written_ = std::make_shared<const cluster::Node>(std::move(node));
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node_;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, "", options));
  NodeAndPods fresh{written_, {}};
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
  holders_ = RestoreHolders(devices, holders_, pods);
  return devices;
}

void Observer::Forget(int gpu, const std::string& uuid) {
  const auto known = last_read_.find(gpu);
  if (known == last_read_.end()) return;
  std::erase_if(known->second.first.instances,
                [&](const device::GpuInstance& instance) { return instance.uuid == uuid; });
}

}  // namespace nos::agent
