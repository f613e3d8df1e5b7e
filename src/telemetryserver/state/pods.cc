#include "telemetryserver/state/pods.h"

#include <algorithm>
#include <utility>

#include "telemetryserver/state/refresh.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxPods = 200'000;

std::string PodKey(const std::string& ns, const std::string& name) { return ns + "/" + name; }

Pod PodOf(const telemetry::Record& record, const std::string& uid) {
  const Json& body = record.body;
  Pod pod;
  pod.uid = uid;
  pod.ns = std::string(FindString(body, "namespace"));
  pod.name = std::string(FindString(body, "name"));
  pod.state = std::string(FindString(body, "state"));
  pod.node = std::string(FindString(body, "node"));
  pod.quota = std::string(FindString(body, "quota"));
  pod.at = record.at;
  pod.created = telemetry::IntegerOr(body, "created", 0);
  pod.scheduled = telemetry::IntegerOr(body, "scheduled", 0);
  pod.started = telemetry::IntegerOr(body, "started", 0);
  pod.finished = telemetry::IntegerOr(body, "finished", 0);
  pod.ends = telemetry::IntegerOr(body, "ends", 0);
  pod.priority = telemetry::IntegerOr(body, "priority", 0);
  if (const auto job = FindString(body, "job", "name"); !job.empty()) {
    pod.job = std::string(FindString(body, "job", "kind")) + "/" + std::string(job);
  }
  if (const Json* requests = Find(body, "requests"); requests != nullptr && requests->is_object()) {
    for (const auto& [key, value] : requests->get_object()) {
      if (value.is_number()) {
        pod.requests.emplace_back(std::string(key.data(), key.size()), value.to_number<double>());
      }
    }
  }
  pod.body = body;
  return pod;
}

bool HasEnded(const Pod& pod) { return pod.state == "succeeded" || pod.state == "failed"; }
bool HasRun(const Pod& pod) { return pod.started > 0 && pod.finished >= pod.started; }

}  // namespace

void PodTable::Apply(const telemetry::Record& record, const std::string& uid, Effects& effects) {
  const auto found = pods_.find(uid);
  const bool known = found != pods_.end();
  if (!known && IsOver(gone_, record, uid, effects)) return;
  const bool same = known && SameButTime(found->second.body, record.body);
  const bool late = known && record.at < found->second.at;
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, uid, record.body});
  }
  if (late) {
    Pod& pod = found->second;
    if (!same) WriteAgain(record.kind, uid, pod.body, pod.repeated, effects);
    return;
  }
  if (same) return Refresh(found->second, record.at);
  Pod pod = PodOf(record, uid);
  if (pod.scheduled > 0 && pod.WantsGpu() && (!known || found->second.scheduled == 0)) {
    durations_.AddWait(pod.scheduled, std::max<telemetry::Millis>(0, pod.scheduled - pod.created));
  }
  if (HasRun(pod) && (!known || found->second.finished == 0)) {
    durations_.AddRun(RunsKeys(pod), pod.finished - pod.started);
  }
  if (known) pod.estimate = found->second.estimate;
  nodes_.Touch(pod.node);
  if (!known) MakeRoom();
  std::string& newest = uid_of_[PodKey(pod.ns, pod.name)];
  const auto other = pods_.find(newest);
  if (other == pods_.end() || other->second.created <= pod.created) newest = pod.uid;
  pod.version = version_.Next();
  pods_[uid] = std::move(pod);
}

void PodTable::Remove(telemetry::Millis at, const std::string& uid, Effects& effects) {
  if (const auto found = pods_.find(uid); found != pods_.end()) {
    Pod& pod = found->second;
    if (pod.at > at) return WriteAgain("pod", uid, pod.body, pod.repeated, effects);
    Erase(uid);
  }
  gone_.Remove("pod", uid, at);
}

// Removes an ended pod, else the first by uid, to stay within the limit.
void PodTable::MakeRoom() {
  if (pods_.size() < kMaxPods) return;
  auto victim = std::ranges::find_if(pods_, [](const auto& pod) { return HasEnded(pod.second); });
  if (victim == pods_.end()) victim = pods_.begin();
  Erase(victim->first);
}

// `uid` may refer to the key of the erased entry.
void PodTable::Erase(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const auto named = uid_of_.find(PodKey(found->second.ns, found->second.name));
  if (named != uid_of_.end() && named->second == uid) uid_of_.erase(named);
  nodes_.Touch(found->second.node);
  Remember(removed_, version_.Next(), RemovedPod{found->second.ns, uid});
  pods_.erase(found);
}

std::vector<std::string> PodTable::Unlisted(const std::set<std::string>& listed,
                                            telemetry::Millis at) const {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) {
    if (pod.at <= at && !listed.contains(uid)) uids.push_back(uid);
  }
  return uids;
}

void PodTable::Confirm(telemetry::Millis listed) {
  for (auto& [uid, pod] : pods_) {
    if (pod.at >= 0 && pod.at < listed) Refresh(pod, listed);
  }
}

void PodTable::NotAfter(telemetry::Millis now) {
  for (auto& [uid, pod] : pods_) {
    if (pod.at <= now) continue;
    pod.body.get_object()["at"] = now;
    pod.at = now;
  }
}

// Increases the version of pods whose estimate changed, for followers of the state.
void PodTable::SetEstimates(const std::map<std::string, Estimate>& estimates) {
  for (auto& [uid, pod] : pods_) {
    if (pod.state != "pending") continue;
    const auto found = estimates.find(uid);
    const Estimate estimate = found == estimates.end() ? Estimate{} : found->second;
    if (pod.estimate == estimate) continue;
    pod.estimate = estimate;
    pod.version = version_.Next();
  }
}

const Pod* PodTable::Find(const std::string& ns, const std::string& name) const {
  // Reuses the buffer, because this is called for each holder of a fleet.
  static thread_local std::string key;
  key.assign(ns).append("/").append(name);
  const auto uid = uid_of_.find(key);
  if (uid == uid_of_.end()) return nullptr;
  const auto found = pods_.find(uid->second);
  return found == pods_.end() ? nullptr : &found->second;
}

}  // namespace nos::telemetryserver
