#include "agent/node/observer.h"

#include <algorithm>
#include <utility>

#include "cluster/pod_end.h"
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

// API servers before 1.31 answer a list without version from etcd, and read all pods of the cluster
// for those of a node (kubernetes pkg/registry/core/pod, apiserver/pkg/storage/etcd3). A list of
// one name reads one key. Its answer names the version of that moment, and a list that may not be
// older than this, and has no limit, is answered from the API server's memory as soon as that has
// it.
Result<kube::ObjectList> Observer::ListPodsUncached(kube::Client& client) const {
  kube::ListOptions options;
  options.limit = 0;
  options.field_selector = "metadata.name=" + node_;  // any name will do
  NOS_ASSIGN(const kube::ObjectList now, client.List(kube::kPods, "default", options));
  options.resource_version = now.resource_version;
  options.field_selector = "spec.nodeName=" + node_;
  return client.List(kube::kPods, "", options);
}

Result<NodeAndPods> Observer::ReadUncached(kube::Client& client) {
  NOS_ASSIGN(const Json object, client.Get(kube::kNodes, "", node_));
  NOS_ASSIGN(cluster::Node node, cluster::DecodeNode(object));
  NodeAndPods fresh{std::make_shared<const cluster::Node>(std::move(node)), {}};
  written_.Wrote(fresh.node);
  NOS_ASSIGN(const kube::ObjectList list, ListPodsUncached(client));
  for (const Json& item : list.items) {
    Result<cluster::Pod> pod = cluster::DecodePod(item);
    if (pod.ok()) {
      fresh.pods.push_back(std::make_shared<const cluster::Pod>(std::move(pod).value()));
    }
  }
  return fresh;
}

void Observer::OnPods(const reconcile::Changes& changes) {
  for (const auto& [before, after] : changes.pods) {
    if (before == nullptr || !cluster::HasEnded(*before)) continue;
    const bool deleted = after == nullptr || after->meta.uid != before->meta.uid;
    if (deleted) ended_[before->meta.uid] = before->Key();
  }
}

Result<NodeDevices> Observer::ReadDevices(const SharingSettings& settings,
                                          const cluster::Node& node,
                                          std::span<const std::shared_ptr<const cluster::Pod>> pods,
                                          bool withdraws, Time now) {
  // 1. Read driver and kubelet.
  backend_.GiveWhole(settings.hybrid);
  std::vector<std::string> reported;  // devices in memory among them have to be restored
  for (const auto& [uuid, holder] : holders_.value_or(Holders())) {
    if (holder.reported) reported.push_back(uuid);
  }
  Result<NodeDevices> read = Observe(backend_, pod_resources_, catalogue_, settings, reported);
  failed_ |= !read.ok();
  if (!read.ok()) return read;
  NodeDevices devices = std::move(read).value();
  unreadable_may_return_ = KeepUnreadable(devices, last_read_, withdraws, options_.unreadable, now);
  if (options_.health != nullptr) Mark(devices, options_.health->Conditions());
  // 2. Complete the list of holders.
  if (std::exchange(failed_, false)) RestartGracePeriods(now);
  if (!holders_) {
    holders_ = options_.recalls ? ReportedHolders(node, devices, catalogue_) : Holders();
    // The second reading restores the devices that exist only in memory.
    if (!holders_->empty()) return ReadDevices(settings, node, pods, withdraws, now);
  }
  DepartedPods departed{ended_, std::nullopt};
  if (options_.cgroups != nullptr && HasDeparted(*holders_, pods)) {
    Result<std::map<std::string, bool>> cgroups = options_.cgroups->Read();
    if (cgroups.ok()) departed.cgroups = std::move(cgroups).value();
  }
  holders_ = RestoreHolders(devices, *holders_, pods, departed, now);
  // A plugin that reads the devices itself does not know them as unhealthy.
  if (withdraws) devices.unhealthy.insert(devices.departed.begin(), devices.departed.end());
  std::erase_if(ended_, [&](const auto& ended) {
    return std::ranges::none_of(
        *holders_, [&](const auto& holder) { return holder.second.pod == ended.second; });
  });
  return devices;
}

// A kubelet that did not answer may not have run: it ended no container then.
void Observer::RestartGracePeriods(Time now) {
  if (!holders_) return;
  for (auto& [uuid, holder] : *holders_) {
    if (holder.missing != Time{}) holder.missing = now;
  }
}

void Observer::Forget(int gpu, const std::string& uuid) {
  const auto known = last_read_.find(gpu);
  if (known == last_read_.end()) return;
  std::erase_if(known->second.first.instances,
                [&](const device::GpuInstance& instance) { return instance.uuid == uuid; });
}

}  // namespace nos::agent
