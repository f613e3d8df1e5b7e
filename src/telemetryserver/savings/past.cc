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

class PastReader {
 public:
  PastReader(const gpu::Catalogue& catalogue, telemetry::Millis from, telemetry::Millis to)
      : catalogue_(catalogue), past_{.from = from, .to = to} {}

  Status Read(Archive& archive, int64_t cluster) {
    NOS_RETURN_IF_ERROR(archive.StateAt(cluster, past_.from, state_).status());
    for (const auto& [name, node] : state_.nodes()) LookAtNode(name, past_.from);
    for (const auto& [uid, pod] : state_.pods()) LookAtPod(uid, past_.from);
    NOS_RETURN_IF_ERROR(archive.EachChange(cluster, past_.from, past_.to,
                                           [&](const Event& event) { Apply(event); }));
    if (pods_.size() <= kMaxPastPods) return Status::Ok();
    return Invalid(
        fmt::format("that time has more than {} pods: ask for a shorter time", kMaxPastPods));
  }

  Past Take() && {
    for (auto& [uid, seen] : pods_) {
      if (seen.pod.requests.empty() || (!seen.pod.ran() && seen.removed)) {
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
    bool removed = false;
  };
  using GpuName = std::pair<std::string, std::string>;  // node and uuid

  void Apply(const Event& event) {
    if (state_.Restore(event.body)) return;
    const auto record = telemetry::ReadRecord(event.body);
    if (!record.ok()) return;
    state_.Apply(*record, kServer);
    if (event.kind == "pod") return LookAtPod(event.object, event.at);
    if (event.kind == "layout") return LookAtNode(event.object, event.at);
    if (event.kind != "removed") return;
    if (const auto uid = After(event.object, "pod/"); !uid.empty()) {
      Remove(std::string(uid), event.at);
    } else if (const auto node = After(event.object, "node/"); !node.empty()) {
      LookAtNode(std::string(node), event.at);
    }
  }

  void LookAtPod(const std::string& uid, telemetry::Millis at) {
    const auto found = state_.pods().find(uid);
    if (found == state_.pods().end()) return;
    const Pod& pod = found->second;
    const bool bound = pod.scheduled > 0 || !pod.node.empty();
    auto seen = pods_.find(uid);
    if (seen == pods_.end()) {
      // Ended before the time, or not to be scheduled yet.
      const telemetry::Millis ended = pod.finished > 0 ? pod.finished : pod.at;
      if (!pod.WantsGpu() || (HasEnded(pod) && (ended <= past_.from || !bound))) return;
      if (!bound && pod.IsGated()) {
        gated_.insert(uid);
        return;
      }
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
      past.bound = pod.scheduled > 0 ? pod.scheduled : at;
      past.asked = std::min(past.asked, std::max(past.bound, past_.from));
    }
    if (past.ran() && HasEnded(pod) && past.ended == kEndless) {
      past.ended = std::max(past.bound, pod.finished > 0 ? pod.finished : pod.at);
    }
  }

  void Remove(const std::string& uid, telemetry::Millis at) {
    const auto seen = pods_.find(uid);
    if (seen == pods_.end()) return;
    seen->second.removed = true;
    PastPod& pod = seen->second.pod;
    if (pod.ran() && pod.ended == kEndless) pod.ended = std::max(pod.bound, at);
  }

  void LookAtNode(const std::string& name, telemetry::Millis at) {
    std::set<std::string> there;
    if (const auto node = state_.nodes().find(name); node != state_.nodes().end()) {
      for (const telemetry::Gpu& gpu : node->second.layout.gpus) {
        there.insert(gpu.uuid);
        const auto [known, added] = gpus_.try_emplace({name, gpu.uuid}, past_.gpus.size());
        if (added) past_.gpus.push_back({gpu.product, gpu.memory, at, kEndless});
      }
    }
    for (auto known = gpus_.lower_bound({name, ""});
         known != gpus_.end() && known->first.first == name;) {
      if (there.contains(known->first.second)) {
        ++known;
        continue;
      }
      past_.gpus[known->second].to = at;
      known = gpus_.erase(known);
    }
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
  std::map<std::string, Seen> pods_;  // by uid
  std::set<std::string> gated_;       // uids
  std::map<GpuName, size_t> gpus_;    // present ones: index in past_.gpus
};

}  // namespace

Result<Past> ReadPast(Archive& archive, int64_t cluster, const gpu::Catalogue& catalogue,
                      telemetry::Millis from, telemetry::Millis to) {
  PastReader reader(catalogue, from, to);
  NOS_RETURN_IF_ERROR(reader.Read(archive, cluster));
  return std::move(reader).Take();
}

}  // namespace nos::telemetryserver
