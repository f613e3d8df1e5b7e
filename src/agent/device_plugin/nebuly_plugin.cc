#include "agent/nebuly_plugin.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "device/mps_share.h"

namespace nos::agent {
namespace {

constexpr int kMaxVariants = 16;
// Annotation on the plugin's pod. Kubelets refresh a pod's ConfigMaps at once when its annotations
// change. Source: kubernetes.io/docs/tasks/configure-pod-container/configure-pod-configmap,
// "Mounted ConfigMaps are updated automatically".
constexpr std::string_view kReminder = "nos.nebuly.com/device-plugin-config";

bool IsShare(const std::string& id) { return device::ParseMpsShareId(id).has_value(); }

int NumberOf(const device::GpuInstance* instance) {
  const auto share = device::ParseMpsShareId(instance->uuid);
  return share ? share->start : 0;
}

// Existing shares of each profile, held ones first. Leaves out free shares above a gap, because the
// plugin cannot offer them.
std::map<gpu::ProfileId, std::vector<const device::GpuInstance*>> ByProfile(
    const device::ObservedGpu& gpu, const std::set<std::string>& held) {
  std::map<gpu::ProfileId, std::vector<const device::GpuInstance*>> instances;
  for (const device::GpuInstance& instance : gpu.instances) {
    if (const auto profile = gpu.model->FindProfile(instance.profile)) {
      instances[*profile].push_back(&instance);
    }
  }
  for (auto& [profile, list] : instances) {
    std::ranges::sort(list, {}, NumberOf);
    std::vector<const device::GpuInstance*> staying, free;
    int next = 0;  // next number that the plugin can offer
    for (const device::GpuInstance* instance : list) {
      const bool offered = NumberOf(instance) == next;
      next += offered ? 1 : 0;
      if (held.contains(instance->uuid)) {
        staying.push_back(instance);
      } else if (offered) {
        free.push_back(instance);
      }
    }
    list = std::move(staying);
    list.insert(list.end(), free.begin(), free.end());
  }
  return instances;
}

uint8_t LowestBeside(const std::set<uint8_t>& starts) {
  uint8_t start = 0;
  while (starts.contains(start)) ++start;
  return start;
}

bool IsThere(const device::ObservedGpu& gpu, gpu::Placement placement) {
  return std::ranges::any_of(gpu.instances, [&](const device::GpuInstance& instance) {
    return instance.start == placement.start &&
           gpu.model->FindProfile(instance.profile) == placement.profile;
  });
}

std::vector<gpu::Placement> Matched(const std::vector<gpu::Placement>& wanted,
                                    const device::ObservedGpu& gpu,
                                    const std::set<std::string>& held) {
  auto instances = ByProfile(gpu, held);
  std::set<uint8_t> there, taken;
  for (const device::GpuInstance& instance : gpu.instances) there.insert(instance.start);
  std::vector<gpu::Placement> matched;
  std::vector<gpu::ProfileId> missing;
  std::map<gpu::ProfileId, size_t> used;
  for (const gpu::Placement& placement : wanted) {
    const auto& list = instances[placement.profile];
    size_t& next = used[placement.profile];
    if (next >= list.size()) {
      missing.push_back(placement.profile);
      continue;
    }
    matched.push_back({placement.profile, list[next++]->start});
    taken.insert(matched.back().start);
  }
  for (const gpu::ProfileId profile : missing) {
    std::set<uint8_t> avoided = there;
    avoided.insert(taken.begin(), taken.end());
    uint8_t start = LowestBeside(avoided);
    // Reuse the number of a share that is to be destroyed.
    if (start >= gpu.model->max_instances()) start = LowestBeside(taken);
    taken.insert(start);
    // If that share still exists it would match this placement, so it must be destroyed first.
    if (!IsThere(gpu, {profile, start})) matched.push_back({profile, start});
  }
  return matched;
}

// Leaves out unhealthy GPUs: the kubelet does not list their devices.
NebulyShares Without(NebulyShares shares, const std::set<std::string>& gpus) {
  std::erase_if(shares, [&](const auto& share) { return gpus.contains(share.first.first); });
  return shares;
}

std::string UuidOf(const kubelet::OfferedDevice& share) {
  return share.device_id.substr(0, share.device_id.find("::"));
}

}  // namespace

NebulyShares SharesIn(const std::vector<kubelet::OfferedDevice>& devices) {
  std::set<device::MpsShare> there;
  for (const kubelet::OfferedDevice& device : devices) {
    if (const auto share = device::ParseMpsShareId(device.device_id)) there.insert(*share);
  }
  NebulyShares shares;
  for (const device::MpsShare& share : there) {
    const auto counted = shares.find({share.gpu_uuid, share.gib});
    const int next = counted == shares.end() ? 0 : counted->second;
    if (share.start == next) shares[{share.gpu_uuid, share.gib}] = next + 1;
  }
  return shares;
}

std::vector<gpu::Obstacle> MatchShares(std::vector<device::Target>& targets,
                                       const NodeDevices& devices) {
  const std::set<std::string> held = devices.Held();
  std::vector<gpu::Obstacle> obstacles;
  for (device::Target& target : targets) {
    const auto gpu = std::ranges::find(devices.gpus, target.gpu, &device::ObservedGpu::index);
    if (gpu == devices.gpus.end() || !gpu->model->counted()) continue;
    if (target.model != nullptr && target.model != gpu->model) continue;
    if (held.contains(gpu->uuid)) {
      if (!target.placements.empty()) {
        obstacles.push_back({target.gpu, "", gpu::obstacles::kInUse,
                             fmt::format("GPU {} is in use as a whole", target.gpu)});
      }
      target.placements.clear();
      continue;
    }
    target.placements = Matched(target.placements, *gpu, held);
  }
  return obstacles;
}

std::set<std::string> SharesBelow(const std::set<std::string>& ids) {
  std::set<std::string> below;
  for (const std::string& id : ids) {
    std::optional<device::MpsShare> share = device::ParseMpsShareId(id);
    while (share && share->start-- > 0) {
      // Lower numbers are in the set already.
      if (!below.insert(device::MpsShareId(*share)).second) break;
    }
  }
  return below;
}

std::set<std::string> WithSharesBelow(std::set<std::string> ids, const NodeDevices& devices) {
  const std::set<std::string> held = devices.Held();
  ids.merge(SharesBelow(ids));
  for (const device::GpuInfo& info : devices.infos) {
    const auto gpu = std::ranges::find(devices.gpus, info.index, &device::ObservedGpu::index);
    if (info.share_gib == 0 || gpu == devices.gpus.end()) continue;
    int room = info.share_gib;
    std::set<device::MpsShare> there;  // ordered by size and number
    for (const device::GpuInstance& instance : gpu->instances) {
      const auto share = device::ParseMpsShareId(instance.uuid);
      if (!share) continue;
      there.insert(*share);
      if (held.contains(instance.uuid)) room -= share->gib;
    }
    int gib = 0, next = 0;  // next number of this size that the plugin can offer
    for (const device::MpsShare& share : there) {
      if (std::exchange(gib, share.gib) != share.gib) next = 0;
      const bool offered = share.start == next;
      next += offered ? 1 : 0;
      const std::string id = device::MpsShareId(share);
      if (held.contains(id) || !ids.contains(id)) continue;
      if (offered && share.gib <= room) {
        room -= share.gib;
      } else {
        ids.erase(id);
      }
    }
  }
  return ids;
}

NodeDevices AsShown(NodeDevices devices, const kubelet::DevicePlugin& plugin) {
  const std::set<std::string> held = devices.Held();
  std::erase_if(devices.gpus, [&](const device::ObservedGpu& gpu) {
    return gpu.model->counted() && held.contains(gpu.uuid);
  });
  for (device::ObservedGpu& gpu : devices.gpus) {
    std::erase_if(gpu.instances, [&](const device::GpuInstance& instance) {
      return !held.contains(instance.uuid) && !plugin.Shows(instance.uuid);
    });
  }
  return devices;
}

std::optional<bool> PodHasFile(const std::string& folder, const std::string& uid,
                               const std::string& file) {
  namespace fs = std::filesystem;
  const bool plain = uid.find('/') == std::string::npos && !uid.empty() && uid != "..";
  std::error_code error;
  if (!plain) return std::nullopt;
  const fs::path volumes = fs::path(folder) / uid / "volumes/kubernetes.io~configmap";
  fs::directory_iterator volume(volumes, error);
  if (error) return std::nullopt;
  for (; !error && volume != fs::directory_iterator(); volume.increment(error)) {
    std::error_code absent;
    if (fs::exists(volume->path() / file, absent)) return true;
  }
  return error ? std::nullopt : std::optional(false);
}

std::set<std::string> NebulyPlugin::LeftOut(
    const std::map<std::string, std::string>& unwanted) const {
  std::set<std::string> shares;
  for (const auto& [id, resource] : unwanted) {
    if (IsShare(id)) shares.insert(id);
  }
  return shares;
}

Status NebulyPlugin::Offer(const Devices& devices) {
  Devices shares, others;
  for (const kubelet::OfferedDevice& device : devices) {
    (IsShare(device.device_id) ? shares : others).push_back(device);
  }
  NOS_RETURN_IF_ERROR(others_.Offer(others));
  return shares_.AnyShared() ? OfferShares(shares) : Leave();
}

bool NebulyPlugin::RefuseAllocation(const std::string& device_id) {
  return IsShare(device_id) || others_.RefuseAllocation(device_id);
}

bool NebulyPlugin::Shows(const std::string& device_id) const {
  if (!IsShare(device_id)) return others_.Shows(device_id);
  return shown_ && shown_->contains(device_id);
}

Status NebulyPlugin::OfferShares(const Devices& shares) {
  left_ = false;
  NOS_ASSIGN(const Devices allocatable, pod_resources_.Allocatable());
  shown_.emplace();
  for (const kubelet::OfferedDevice& device : allocatable) {
    if (IsShare(device.device_id)) shown_->insert(device.device_id);
  }
  std::set<std::string> broken;  // GPUs
  for (const kubelet::OfferedDevice& share : shares) {
    if (!share.healthy) broken.insert(UuidOf(share));
  }
  const NebulyShares wanted = SharesIn(shares);
  const bool offered = Without(SharesIn(allocatable), broken) == Without(wanted, broken);
  const Time now = clock_.Now();
  if (offered && settled_ == wanted && now < look_again_) return Status::Ok();
  if (sought_ != wanted) {
    sought_ = wanted;
    since_ = now;
  }
  settled_.reset();
  if (!offered && named_ == wanted && now < look_again_) return NotYet(waiting_);
  NOS_RETURN_IF_ERROR(Follow(wanted, offered));
  named_.reset();
  sought_.reset();
  settled_ = wanted;
  look_again_ = now + options_.look_again;
  return Status::Ok();
}

// OK if ConfigMap, label and kubelet agree.
Status NebulyPlugin::Follow(const NebulyShares& wanted, bool offered) {
  NOS_ASSIGN(const NebulyConfigMap::NodeLabels labels, map_.Labels());
  const bool ours = IsNebulyKeyOf(options_.config_map.node, labels.config);
  // The label belongs to another tool, or is absent.
  if (wanted.empty() && offered && !ours) return Status::Ok();
  NOS_ASSIGN(const Texts texts, map_.Read());
  NOS_ASSIGN(const std::vector<device::GpuInfo> infos, gpus_());
  std::map<int64_t, std::string> gpus;
  for (const device::GpuInfo& info : infos) gpus[info.index] = info.uuid;
  const auto text = texts.find(labels.config);
  if (text != texts.end()) {
    const Result<NebulyShares> named = ReadNebulyConfig(text->second, gpus);
    if (named.ok() && *named == wanted) {
      if (offered) return Confirm(labels.config, wanted, texts);
      named_ = wanted;
      look_again_ = clock_.Now() + options_.look_while_waiting;
      waiting_ = fmt::format(
          "label {} of node {} names key {} of ConfigMap {}, but the kubelet does not offer what "
          "that says",
          kNebulyLabel, options_.config_map.node, labels.config, map_.Name());
      return NotYet(waiting_);
    }
  }
  return Publish(wanted, texts);
}

// REQUIRES: the key that the label names does not contain `wanted`.
Status NebulyPlugin::Publish(const NebulyShares& wanted, const Texts& texts) {
  const std::string text = WriteNebulyConfig(wanted);
  std::string key;
  // Skip keys that were changed by hand.
  for (int variant = 0; variant < kMaxVariants; ++variant) {
    key = NebulyKey(options_.config_map.node, text, variant);
    const auto known = texts.find(key);
    if (known == texts.end() || known->second == text) break;
  }
  if (const auto known = texts.find(key); known == texts.end() || known->second != text) {
    NOS_RETURN_IF_ERROR(map_.Put(key, text));
    Log(LogLevel::kInfo, "requesting shares from Nebuly's device plugin",
        {{"node", options_.config_map.node}, {"key", key}});
  }
  if (key != written_key_) {
    written_key_ = key;
    written_ = clock_.Now();
    reminded_.clear();
  }
  NOS_ASSIGN(const bool arrived, Arrived(key));
  if (!arrived) {
    return NotYet(
        fmt::format("key {} of ConfigMap {} has not come into the plugin's pod on node {}", key,
                    map_.Name(), options_.config_map.node));
  }
  NOS_RETURN_IF_ERROR(map_.SetLabel(key));
  return {Code::kUnavailable,
          fmt::format("waiting for Nebuly's device plugin to read key {}", key)};
}

// All keys of this node except `but`.
std::set<std::string> NebulyPlugin::OldKeys(const Texts& texts, const std::string& but) const {
  std::set<std::string> keys;
  for (const auto& [key, text] : texts) {
    if (key != but && IsNebulyKeyOf(options_.config_map.node, key)) keys.insert(key);
  }
  return keys;
}

// The plugin has read the key that the label names, so the node's other keys can be deleted.
Status NebulyPlugin::Confirm(const std::string& key, const NebulyShares& wanted,
                             const Texts& texts) {
  written_key_.clear();
  NOS_RETURN_IF_ERROR(map_.Remove(OldKeys(texts, key)));
  Log(LogLevel::kInfo, "found requested shares of Nebuly's device plugin",
      {{"node", options_.config_map.node}, {"key", key}, {"kinds", std::to_string(wanted.size())}});
  return Status::Ok();
}

// True if all pods of the plugin on this node have the key as a file, or must have it by now.
// Annotates each pod once, so that its kubelet updates the file.
Result<bool> NebulyPlugin::Arrived(const std::string& key) {
  NOS_ASSIGN(const std::vector<Json> pods, PluginPods());
  bool seen = !pods.empty(), unseen = false;
  for (const Json& pod : pods) {
    const std::string uid(FindString(pod, "metadata", "uid"));
    const std::optional<bool> has = PodHasFile(options_.pods_folder, uid, key);
    seen &= has.value_or(false);
    unseen |= has.has_value() && !*has;
    if (has.value_or(false) || !reminded_.insert(uid).second) continue;
    Json patch = JsonObject();
    MakeObject(patch, "metadata", "annotations")[kReminder] = key;
    const std::string name(FindString(pod, "metadata", "name"));
    const Status annotated =
        client_.Patch(kube::kPods, options_.config_map.ns, name, kube::PatchType::kMerge, patch)
            .status();
    if (!annotated.ok()) {  // the file arrives with the kubelet's next sync
      Log(LogLevel::kWarn, "failed to annotate Pod of Nebuly's device plugin",
          {{"pod", name}, {"error", annotated.message()}});
    }
  }
  return seen || (!unseen && clock_.Now() >= written_ + options_.volume_lag);
}

Status NebulyPlugin::NotYet(const std::string& what) {
  if (clock_.Now() < since_ + options_.patience) return {Code::kUnavailable, what};
  NOS_ASSIGN(const std::vector<Json> pods, PluginPods());
  if (pods.empty()) {
    return {Code::kDeadline,
            fmt::format("{}: no pod in namespace {} on node {} has the labels {}: is mps.nebuly."
                        "selector right, and does the plugin run there?",
                        what, options_.config_map.ns, options_.config_map.node, options_.selector)};
  }
  std::vector<std::string> names;
  names.reserve(pods.size());
  for (const Json& pod : pods) names.emplace_back(FindString(pod, "metadata", "name"));
  return {Code::kDeadline, fmt::format("{}: look at the logs of all containers of pod {} in "
                                       "namespace {}",
                                       what, fmt::join(names, ", "), options_.config_map.ns)};
}

// The plugin's pods on this node, except terminating ones.
Result<std::vector<Json>> NebulyPlugin::PluginPods() {
  kube::ListOptions options;
  options.label_selector = options_.selector;
  options.field_selector = "spec.nodeName=" + options_.config_map.node;
  NOS_ASSIGN(kube::ObjectList list, client_.List(kube::kPods, options_.config_map.ns, options));
  std::erase_if(list.items, [](const Json& pod) {
    return !FindString(pod, "metadata", "deletionTimestamp").empty();
  });
  return std::move(list.items);
}

// Removes label and keys because no GPU is shared. A label that stays would stop a plugin that is
// installed later and does not have that configuration.
Status NebulyPlugin::Leave() {
  shown_.reset();
  settled_.reset();
  sought_.reset();
  named_.reset();
  const Time now = clock_.Now();
  if (left_ && now < look_again_) return Status::Ok();
  NOS_ASSIGN(const NebulyConfigMap::NodeLabels labels, map_.Labels());
  if (labels.partitioning == "mps") return Status::Ok();  // the GPUs are about to be shared
  if (IsNebulyKeyOf(options_.config_map.node, labels.config)) {
    NOS_ASSIGN(const auto held, pod_resources_.List());
    if (std::ranges::any_of(held, [](const auto& one) { return IsShare(one.device_id); })) {
      return Status::Ok();
    }
    NOS_RETURN_IF_ERROR(map_.SetLabel(std::nullopt));
    const Result<Texts> texts = map_.Read();
    if (!texts.ok() && texts.status().code() != Code::kNotFound) return texts.status();
    if (texts.ok()) NOS_RETURN_IF_ERROR(map_.Remove(OldKeys(*texts, "")));
  }
  left_ = true;
  look_again_ = now + options_.look_again;
  return Status::Ok();
}

}  // namespace nos::agent
