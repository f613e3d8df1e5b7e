#include "sim/world/node/pod_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/back_off.h"
#include "base/text.h"
#include "sim/specs.h"

namespace nos::sim {
namespace {

constexpr std::string_view kAttempt = "sim.nos.nebuly.com/attempt";

bool Finished(const Json& pod) {
  const std::string_view phase = FindString(pod, "status", "phase");
  return phase == "Failed" || phase == "Succeeded";
}

// True if the node refused to run the pod, as opposed to a failure of the pod itself.
bool Refused(const Json& pod) {
  const std::string_view reason = FindString(pod, "status", "reason");
  return FindString(pod, "status", "phase") == "Failed" &&
         (reason == "UnexpectedAdmissionError" || reason.starts_with("OutOf"));
}

bool IsLabeled(const Json& pod) {
  return !FindString(pod, "metadata", "labels", kPodLabel).empty();
}

// True if a condition records the eviction and the pod has an owner that would recreate it.
bool Evicted(const Json& pod) {
  const Json* conditions = Find(pod, "status", "conditions");
  const Json* owners = Find(pod, "metadata", "ownerReferences");
  if (conditions == nullptr || !conditions->is_array()) return false;
  if (owners == nullptr || !owners->is_array() || owners->get_array().empty()) return false;
  const bool terminating = Find(pod, "metadata", "deletionTimestamp") != nullptr;
  return std::ranges::any_of(conditions->get_array(), [&](const Json& condition) {
    if (FindString(condition, "type") != "DisruptionTarget") return false;
    // The scheduler marks its victim before it deletes it, and may never come to that.
    const std::string_view reason = FindString(condition, "reason");
    return reason == "EvictionByEvictionAPI" || (reason == "PreemptionByScheduler" && terminating);
  });
}

// The pods of a Job stay until it is deleted, so that its logs can be read. Labelled pods only name
// a Job that does not exist.
bool IsOfJob(const Json& pod) {
  const Json* owners = Find(pod, "metadata", "ownerReferences");
  if (IsLabeled(pod) || owners == nullptr || !owners->is_array()) return false;
  return std::ranges::any_of(owners->get_array(), [](const Json& owner) {
    return FindString(owner, "kind") == "Job" && Find(owner, "controller") != nullptr;
  });
}

int64_t Attempt(const Json& pod) {
  return ParseInt(FindString(pod, "metadata", "annotations", kAttempt)).value_or(0);
}

// The pod that a user would submit to get the same pod again.
Json Successor(const Json& pod, std::string_view base, int64_t attempt) {
  Json spec = *Find(pod, "spec");
  spec.get_object().erase("nodeName");
  JsonObject annotations;
  if (const Json* old = Find(pod, "metadata", "annotations"); old && old->is_object()) {
    annotations = old->get_object();
  }
  annotations[kAttempt] = fmt::to_string(attempt);
  const Json* labels = Find(pod, "metadata", "labels");
  JsonObject meta = {{"name", fmt::format("{}-r{}", base, attempt)},
                     {"namespace", FindString(pod, "metadata", "namespace")},
                     {"labels", *labels},
                     {"annotations", std::move(annotations)}};
  if (const Json* owners = Find(pod, "metadata", "ownerReferences")) {
    meta["ownerReferences"] = *owners;
  }
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", std::move(meta)},
                    {"spec", std::move(spec)},
                    {"status", JsonObject{{"phase", "Pending"}}}};
}

}  // namespace

Status PodKeeper::Keep(JsonSource json, Kept& to) {
  NOS_ASSIGN(to.object, TreeOf(json));
  to.meta.ns = FindString(to.object, "metadata", "namespace");
  to.meta.name = FindString(to.object, "metadata", "name");
  to.meta.resource_version = FindString(to.object, "metadata", "resourceVersion");
  return Status::Ok();
}

PodKeeper::PodKeeper(kube::Transport& api, const Clock& clock, EventLog& log,
                     std::optional<Duration> keep_finished)
    : client_(api),
      clock_(clock),
      log_(log),
      keep_finished_(keep_finished),
      pods_(kube::kPods, Keep),
      nodes_(kube::kNodes, cluster::ReadNode) {
  pods_.AddHandler([this](const std::string&, const KeptPtr& before, const KeptPtr& after) {
    if (after == nullptr) return;
    const std::string_view node = FindString(after->object, "spec", "nodeName");
    const bool bound = !node.empty() && (before == nullptr ||
                                         FindString(before->object, "spec", "nodeName").empty());
    if (bound) just_bound_.emplace_back(node);
    if (!Finished(after->object)) {
      const bool evicted = Evicted(after->object) && IsLabeled(after->object) &&
                           (before == nullptr || !Evicted(before->object));
      if (evicted) to_replace_.emplace(clock_.Now() + kFirstPause, after);
      return;
    }
    if (before != nullptr && Finished(before->object)) return;
    if (Refused(after->object) && IsLabeled(after->object)) ReplaceLater(after);
    if (!IsOfJob(after->object)) finished_.emplace_back(clock_.Now(), after);
  });
  nodes_.AddHandler([this](const std::string& key, const auto&, const auto& after) {
    if (after == nullptr) gone_nodes_.push_back(key);
  });
}

bool PodKeeper::Step() {
  pods_.Pump(client_, clock_.Now());
  nodes_.Pump(client_, clock_.Now());
  for (std::string& node : just_bound_) {  // bound to a node that was deleted before
    if (nodes_.Get(node) == nullptr) gone_nodes_.push_back(std::move(node));
  }
  just_bound_.clear();
  return TakeChange();
}

bool PodKeeper::TakeChange() {
  if (!to_replace_.empty() && to_replace_.begin()->first <= clock_.Now()) {
    Replace(to_replace_.begin()->second->object);
    to_replace_.erase(to_replace_.begin());
    return true;
  }
  if (!gone_nodes_.empty()) {
    RemovePodsOf(gone_nodes_.front());
    gone_nodes_.pop_front();
    return true;
  }
  if (!keep_finished_) {
    finished_.clear();
    return false;
  }
  if (finished_.empty() || clock_.Now() < finished_.front().first + *keep_finished_) return false;
  Remove(finished_.front().second->object);
  finished_.pop_front();
  return true;
}

std::optional<Time> PodKeeper::NextWake() const {
  std::optional<Time> wake;
  if (!to_replace_.empty()) wake = to_replace_.begin()->first;
  if (keep_finished_ && !finished_.empty()) {
    const Time removal = finished_.front().first + *keep_finished_;
    wake = std::min(wake.value_or(removal), removal);
  }
  return wake;
}

void PodKeeper::ReplaceLater(const KeptPtr& pod) {
  const Duration pause = BackOff{kFirstPause, kMaxPause}.After(Attempt(pod->object) + 1);
  to_replace_.emplace(clock_.Now() + pause, pod);
}

void PodKeeper::Replace(const Json& pod) {
  const std::string_view base = FindString(pod, "metadata", "labels", kPodLabel);
  const Json successor = Successor(pod, base, Attempt(pod) + 1);
  const auto created =
      client_.Create(kube::kPods, FindString(pod, "metadata", "namespace"), successor);
  if (!created.ok()) return;
  ++recreated_;
  log_.Note(name_,
            fmt::format("creates {} in place of {}", FindString(successor, "metadata", "name"),
                        FindString(pod, "metadata", "name")));
}

void PodKeeper::Remove(const Json& pod) {
  const Json options =
      JsonObject{{"gracePeriodSeconds", 0},
                 {"preconditions", JsonObject{{"uid", FindString(pod, "metadata", "uid")}}}};
  // Errors are ignored: the pod is already gone, or its name belongs to another pod by now.
  (void)client_.Delete(kube::kPods, FindString(pod, "metadata", "namespace"),
                       FindString(pod, "metadata", "name"), options);
}

void PodKeeper::RemovePodsOf(const std::string& node) {
  const auto pods = pods_.Snapshot();
  for (const KeptPtr& pod : *pods) {
    if (FindString(pod->object, "spec", "nodeName") != node) continue;
    if (IsLabeled(pod->object) && !Finished(pod->object)) ReplaceLater(pod);
    Remove(pod->object);
  }
}

}  // namespace nos::sim
