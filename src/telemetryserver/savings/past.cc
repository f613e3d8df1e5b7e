#include "telemetryserver/savings/past.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace nos::telemetryserver {
namespace {

constexpr std::string_view kServer;  // source of replayed events

std::string_view After(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}

bool HasEnded(const Pod& pod) { return pod.state == "succeeded" || pod.state == "failed"; }

// A pod that nos made to hold a place or to show demand.
bool IsPlaceholder(const Pod& pod) {
  const Json* placeholder = Find(pod.body, "placeholder");
  return placeholder != nullptr && placeholder->is_bool() && placeholder->get_bool();
}

class PastReader {
 public:
  PastReader(const gpu::Catalogue& catalogue, const PastSpan& span)
      : catalogue_(catalogue), past_{.from = span.from, .to = span.to} {}

  Status Read(Archive& archive, int64_t cluster) {
    NOS_RETURN_IF_ERROR(archive.StateAt(cluster, past_.from, state_).status());
    for (const auto& [uid, pod] : state_.pods()) LookAtPod(uid, past_.from);
    for (const auto& [name, node] : state_.nodes()) LookAtNode(name, past_.from);
    NOS_RETURN_IF_ERROR(archive.EachChange(cluster, past_.from, past_.to,
                                           [&](const Event& event) { Apply(event); }));
    if (!too_many_) return Status::Ok();
    return Invalid(fmt::format("that time has more than {} pods or {} GPUs: ask for a shorter time",
                               kMaxPastPods, kMaxPastGpus));
  }

  Past Take() && {
    for (auto& [uid, seen] : pods_) {
      const bool ended_unbound = !seen.pod.ran() && seen.over;
      const bool elsewhere = seen.pod.ran() && !with_gpus_.contains(seen.node);
      if (seen.pod.requests.empty() || ended_unbound || elsewhere) {
        ++past_.left_out;
        continue;
      }
      if (!seen.pod.ran()) seen.pod.similar_runs = SimilarRuns(uid);
      past_.pods.push_back(std::move(seen.pod));
    }
    return std::move(past_);
  }

 private:
  struct Seen {
    PastPod pod;
    std::string node;   // of a pod that ran
    bool over = false;  // ended or deleted
  };
  struct Reported {
    size_t gpu = 0;               // index in past_.gpus
    std::set<std::string> nodes;  // that report it now
  };

  void Apply(const Event& event) {
    if (too_many_ || state_.Restore(event.body)) return;
    const auto record = telemetry::ReadRecord(event.body);
    if (!record.ok()) return;
    state_.Apply(*record, kServer);
    if (event.kind == "pod") return LookAtPod(event.object, event.at);
    // A node that returns has its last layout again from its record on.
    if (event.kind == "layout" || event.kind == "node") return LookAtNode(event.object, event.at);
    if (event.kind != "removed") return;
    if (const auto uid = After(event.object, "pod/"); !uid.empty()) {
      Remove(std::string(uid), event.at);
    } else if (const auto node = After(event.object, "node/"); !node.empty()) {
      LookAtNode(std::string(node), event.at);
    }
  }

  // Times in a record may be any: none lies after the record itself.
  void LookAtPod(const std::string& uid, telemetry::Millis at) {
    const auto found = state_.pods().find(uid);
    if (found == state_.pods().end()) return;
    const Pod& pod = found->second;
    const bool bound = pod.scheduled > 0 || !pod.node.empty();
    const telemetry::Millis finished = pod.finished > 0 ? std::min(pod.finished, at) : pod.at;
    auto seen = pods_.find(uid);
    if (seen == pods_.end()) {
      if (!pod.WantsGpu() || IsPlaceholder(pod)) return;
      if (HasEnded(pod) && (finished <= past_.from || !bound)) return;  // before this time
      if (!bound && pod.IsGated()) {
        gated_.insert(uid);
        return;
      }
      too_many_ = too_many_ || pods_.size() >= kMaxPastPods;
      if (too_many_) return;
      seen = pods_.try_emplace(uid).first;
      seen->second.pod.asked =
          std::clamp(gated_.contains(uid) ? at : pod.created, past_.from, past_.to);
    }
    PastPod& past = seen->second.pod;
    // Requests of a claim are known once it is allocated.
    if (auto requests = DeviceRequestsOf(pod, catalogue_); !requests.empty()) {
      past.requests = std::move(requests);
    }
    past.priority = pod.priority;
    if (bound && !past.ran()) {
      past.bound = pod.scheduled > 0 ? std::min(pod.scheduled, at) : at;
      past.asked = std::min(past.asked, std::max(past.bound, past_.from));
      telemetry::Millis& first = bound_on_.try_emplace(pod.node, past.bound).first->second;
      first = std::min(first, past.bound);
    }
    if (!pod.node.empty()) seen->second.node = pod.node;
    if (!HasEnded(pod)) return;
    seen->second.over = true;
    if (past.ran() && past.ended == kEndless) {
      past.ended = std::max({past.bound, past.asked, finished});
    }
  }

  void Remove(const std::string& uid, telemetry::Millis at) {
    const auto seen = pods_.find(uid);
    if (seen == pods_.end()) return;
    seen->second.over = true;
    PastPod& pod = seen->second.pod;
    if (pod.ran() && pod.ended == kEndless) pod.ended = std::max({pod.bound, pod.asked, at});
  }

  void LookAtNode(const std::string& name, telemetry::Millis at) {
    std::set<std::string> there;
    if (const auto node = state_.nodes().find(name); node != state_.nodes().end()) {
      for (const telemetry::Gpu& gpu : node->second.layout.gpus) {
        there.insert(gpu.uuid);
        AppearGpu(name, gpu, at);
      }
    }
    if (!there.empty()) with_gpus_.insert(name);
    std::set<std::string>& known = of_node_[name];
    for (const std::string& uuid : known) {
      if (there.contains(uuid)) continue;
      Reported& gpu = reported_.at(uuid);
      gpu.nodes.erase(name);
      if (gpu.nodes.empty()) past_.gpus[gpu.gpu].times.back().to = at;
    }
    known = std::move(there);
  }

  // Agents and operator report apart: the first report of a node may come after pods run there.
  void AppearGpu(const std::string& node, const telemetry::Gpu& gpu, telemetry::Millis at) {
    if (!with_gpus_.contains(node)) {
      const auto bound = bound_on_.find(node);
      if (bound != bound_on_.end()) at = std::min(at, std::max(bound->second, past_.from));
    }
    const auto [found, added] = reported_.try_emplace(gpu.uuid);
    if (added) {
      too_many_ = too_many_ || past_.gpus.size() >= kMaxPastGpus;
      found->second.gpu = past_.gpus.size();
      past_.gpus.push_back({gpu.product, gpu.memory, {}});
    }
    auto& times = past_.gpus[found->second.gpu].times;
    if (!times.empty()) at = std::max(at, times.back().to);  // it was elsewhere until then
    if (found->second.nodes.empty()) times.push_back({at, kEndless});
    found->second.nodes.insert(node);
  }

  std::vector<telemetry::Millis> SimilarRuns(const std::string& uid) const {
    const auto pod = state_.pods().find(uid);
    if (pod == state_.pods().end()) return {};
    for (const std::string& key : RunsKeys(pod->second)) {
      if (const auto* runs = state_.durations().RunsOf(key); runs != nullptr && !runs->empty()) {
        return {runs->begin(), runs->end()};
      }
    }
    return {};
  }

  const gpu::Catalogue& catalogue_;
  Past past_;
  State state_;
  bool too_many_ = false;
  std::map<std::string, Seen> pods_;                      // by uid
  std::set<std::string> gated_;                           // uids
  std::map<std::string, telemetry::Millis> bound_on_;     // by node: when its first pod was bound
  std::map<std::string, Reported> reported_;              // by uuid
  std::map<std::string, std::set<std::string>> of_node_;  // uuids that it reports now
  std::set<std::string> with_gpus_;                       // nodes that ever reported GPUs
};

}  // namespace

Result<Past> ReadPast(Archive& archive, int64_t cluster, const gpu::Catalogue& catalogue,
                      const PastSpan& span) {
  PastReader reader(catalogue, span);
  NOS_RETURN_IF_ERROR(reader.Read(archive, cluster));
  return std::move(reader).Take();
}

}  // namespace nos::telemetryserver
