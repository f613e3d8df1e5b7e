#include "telemetryserver/state.h"

#include <algorithm>
#include <utility>

#include "telemetryserver/state/refresh.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMaxPods = 200'000, kMaxNodes = 20'000;
constexpr size_t kMaxSources = 40'000, kMaxSubjects = 1'000'000;
// Maximum number of subjects with readings that are in no layout yet.
constexpr size_t kMaxUnplaced = 10'000;

std::string SubjectOf(const telemetry::Gpu& gpu) { return "gpu/" + gpu.uuid; }
std::string SubjectOf(const telemetry::Instance& instance) { return "instance/" + instance.uuid; }
std::string PodKey(const std::string& ns, const std::string& name) { return ns + "/" + name; }

// (pod, subject) pairs of all held slices.
std::set<std::pair<std::string, std::string>> HeldIn(const telemetry::Layout& layout) {
  std::set<std::pair<std::string, std::string>> held;
  for (const telemetry::Gpu& gpu : layout.gpus) {
    for (const telemetry::Holder& holder : gpu.holders) {
      held.emplace(PodKey(holder.ns, holder.pod), SubjectOf(gpu));
    }
    for (const telemetry::Instance& instance : gpu.instances) {
      for (const telemetry::Holder& holder : instance.holders) {
        held.emplace(PodKey(holder.ns, holder.pod), SubjectOf(instance));
      }
    }
  }
  return held;
}

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

template <typename T>
void Remember(std::deque<std::pair<uint64_t, T>>& recent, uint64_t version, T what) {
  recent.emplace_back(version, std::move(what));
  if (recent.size() > kMaxRecent) recent.pop_front();
}

bool HasEnded(const Pod& pod) { return pod.state == "succeeded" || pod.state == "failed"; }
bool HasRun(const Pod& pod) { return pod.started > 0 && pod.finished >= pod.started; }

}  // namespace

std::vector<std::string> RunsKeys(const Pod& pod) {
  std::vector<std::string> keys;
  if (!pod.job.empty()) {
    keys.push_back(pod.ns + "/" + pod.job);
  } else if (const size_t dash = pod.name.rfind('-'); dash != std::string::npos) {
    keys.push_back(pod.ns + "//" + pod.name.substr(0, dash));
  }
  keys.push_back(pod.ns);
  return keys;
}

bool Pod::WantsGpu() const {
  return std::ranges::any_of(requests, [](const auto& request) {
    return request.second > 0 &&
           request.first.find('/') != std::string::npos;  // extended resources
  });
}

double Pod::Request(std::string_view resource) const {
  for (const auto& [asked, amount] : requests) {
    if (asked == resource) return amount;
  }
  return 0;
}

State::Effects State::Apply(const telemetry::Record& record, std::string_view source) {
  Effects effects;
  now_ = std::max(now_, record.at);
  if (auto known = fresh_.find(source); known != fresh_.end()) {
    known->second = std::max(known->second, record.at);
  } else if (fresh_.size() < kMaxSources) {
    fresh_.emplace(source, record.at);
  }
  if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
    ApplyReadings(record, *readings);
  } else if (const auto* layout = std::get_if<telemetry::Layout>(&record.what)) {
    ApplyLayout(record, *layout, effects);
  } else if (const auto* removed = std::get_if<telemetry::Removed>(&record.what)) {
    ApplyRemoved(record, *removed, effects);
  } else if (const auto* present = std::get_if<telemetry::Present>(&record.what)) {
    ApplyPresent(record, *present, effects);
  } else if (const auto* happening = std::get_if<telemetry::Happening>(&record.what)) {
    effects.changes.push_back({record.at, record.kind, happening->object, record.body});
  } else if (const auto* object = std::get_if<telemetry::Object>(&record.what)) {
    switch (object->kind) {
      case telemetry::Object::Kind::kPod:
        ApplyPod(record, *object, effects);
        break;
      case telemetry::Object::Kind::kNode:
        ApplyNode(record, *object, effects);
        break;
      case telemetry::Object::Kind::kQuota:
        if (ApplyThing(record, *object, quotas_, effects)) quotas_version_ = ++version_;
        break;
      case telemetry::Object::Kind::kJob:
        if (ApplyThing(record, *object, jobs_, effects)) ++version_;
        break;
      case telemetry::Object::Kind::kQueue:
        if (ApplyThing(record, *object, queues_, effects)) ++version_;
        break;
      case telemetry::Object::Kind::kPool:
        if (ApplyThing(record, *object, pools_, effects)) pools_version_ = ++version_;
        break;
      case telemetry::Object::Kind::kDecision: {
        Json decision = DecisionOf(record, object->key);
        effects.changes.push_back({record.at, record.kind, object->key, decision});
        Remember(decisions_, ++version_, std::move(decision));
        break;
      }
    }
  }
  return effects;
}

bool State::Recall(const Json& record) {
  if (Durations::IsRecord(record)) {
    durations_.Read(record);
  } else if (Tombstones::IsRecord(record)) {
    gone_.Read(record);
    for (const char* what : {"pod", "node", "quota", "job", "queue", "pool"}) {
      Confirm(what, gone_.ListedAt(what));
    }
  } else {
    return false;
  }
  return true;
}

void State::NotAfter(telemetry::Millis now) {
  const auto cap = [now](telemetry::Millis& at) { at = std::min(at, now); };
  const auto cap_body = [now](Json& body, telemetry::Millis at) {
    if (at > now) body.get_object()["at"] = now;
  };
  cap(now_);
  for (auto& [source, at] : fresh_) cap(at);
  for (auto& [name, node] : nodes_) {
    if (node.record_at >= 0) cap_body(node.body, node.record_at);
    for (telemetry::Millis* at : {&node.layout_at, &node.record_at, &node.removed_at}) cap(*at);
    node.version = ++version_;
  }
  for (auto& [name, gone] : gone_nodes_) cap(gone.at), cap(gone.layout_at);
  for (auto& [uid, pod] : pods_) {
    cap_body(pod.body, pod.at);
    cap(pod.at);
  }
  for (Things* things : {&quotas_, &jobs_, &queues_, &pools_}) {
    for (auto& [key, thing] : *things)
      cap_body(thing.body, telemetry::IntegerOr(thing.body, "at", 0));
  }
  for (auto& [subject, latest] : latest_) cap(latest.at);
  gone_.NotAfter(now);
}

// Adds the time when the decision was made ("made"), which stays when it is reported again: from
// the reporter, or from an earlier record, or the time of the first report.
Json State::DecisionOf(const telemetry::Record& record, const std::string& id) const {
  Json decision = record.body;
  telemetry::Millis made = telemetry::IntegerOr(decision, "made", 0);
  if (made <= 0 || made > record.at) {
    made = record.at;
    for (const auto& [version, known] : decisions_) {
      if (FindString(known, "id") == id)
        made = std::min(made, telemetry::IntegerOr(known, "made", made));
    }
  }
  decision.get_object()["made"] = made;
  return decision;
}

void State::ApplyReadings(const telemetry::Record& record, const telemetry::Readings& readings) {
  const auto found = latest_.find(readings.subject);
  const size_t most = std::min(kMaxSubjects, node_of_.size() + kMaxUnplaced);
  if (found == latest_.end() && latest_.size() >= most) return;
  Latest& latest = found == latest_.end() ? latest_[readings.subject] : found->second;
  if (record.at < latest.at) return;
  latest = {record.at, readings};
  if (const auto node = node_of_.find(readings.subject); node != node_of_.end()) {
    Touch(node->second);
  }
}

Node* State::NodeNamed(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return &found->second;
  if (nodes_.size() >= kMaxNodes) return nullptr;
  Node& node = nodes_[name];
  node.name = name;
  return &node;
}

// Reports of its agent do not bring a removed node back; only a record of the node does.
void State::KeepForReturn(const telemetry::Record& record, const telemetry::Layout& layout,
                          Effects& effects) {
  GoneNode& gone = gone_nodes_.at(layout.node);
  const bool late = record.at < std::max(gone.at, gone.layout_at);
  if (late || gone.layout_at < 0 || gone.layout != layout) {
    effects.changes.push_back({record.at, record.kind, layout.node, record.body});
  }
  if (late) return;
  gone.layout_at = record.at;
  gone.layout = layout;
}

void State::ApplyLayout(const telemetry::Record& record, const telemetry::Layout& layout,
                        Effects& effects) {
  ForgetUnlisted(layout.node, record.at, effects);
  if (gone_nodes_.contains(layout.node)) return KeepForReturn(record, layout, effects);
  Node* node = NodeNamed(layout.node);
  if (node == nullptr) return;
  const bool same = node->layout_at >= 0 && node->layout == layout;
  const bool late = record.at < std::max(node->layout_at, node->removed_at);
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, layout.node, record.body});
  }
  if (late) {
    if (!same) WriteLayoutAgain(*node, effects);
    return;
  }
  if (!same) Exchange(*node, layout, record.at, effects);
  node->layout_retold = same && (node->layout_retold || record.at > node->layout_at);
  node->layout_at = record.at;
  node->version = ++version_;
}

void State::Exchange(Node& node, const telemetry::Layout& layout, telemetry::Millis at,
                     Effects& effects) {
  const auto before = HeldIn(node.layout);
  const auto after = HeldIn(layout);
  for (const auto& [pod, subject] : before) {
    if (!after.contains({pod, subject})) effects.holds.push_back({at, pod, subject, false});
    nodes_of_[pod].erase(node.name);
    if (nodes_of_[pod].empty()) nodes_of_.erase(pod);
  }
  for (const auto& [pod, subject] : after) {
    if (!before.contains({pod, subject})) effects.holds.push_back({at, pod, subject, true});
    nodes_of_[pod].insert(node.name);
  }
  for (const telemetry::Gpu& gpu : node.layout.gpus) {
    for (const telemetry::Instance& instance : gpu.instances) node_of_.erase(SubjectOf(instance));
  }
  std::set<std::string> gone;
  for (const telemetry::Gpu& gpu : node.layout.gpus) {
    for (const telemetry::Instance& instance : gpu.instances) gone.insert(SubjectOf(instance));
  }
  node.layout = layout;
  for (const telemetry::Gpu& gpu : node.layout.gpus) {
    node_of_[SubjectOf(gpu)] = node.name;
    for (const telemetry::Instance& instance : gpu.instances) {
      node_of_[SubjectOf(instance)] = node.name;
      gone.erase(SubjectOf(instance));
    }
  }
  for (const std::string& subject : gone) latest_.erase(subject);
}

void State::ApplyPod(const telemetry::Record& record, const telemetry::Object& object,
                     Effects& effects) {
  const auto found = pods_.find(object.key);
  const bool known = found != pods_.end();
  if (!known && IsOver(record, object.key, effects)) return;
  const bool same = known && SameButTime(found->second.body, record.body);
  const bool late = known && record.at < found->second.at;
  if (late || !same) {
    effects.changes.push_back({record.at, record.kind, object.key, record.body});
  }
  if (late) {
    Pod& pod = found->second;
    if (!same) WriteAgain(record.kind, object.key, pod.body, pod.retold, effects);
    return;
  }
  if (same) return Refresh(found->second, record.at);
  Pod pod = PodOf(record, object.key);
  if (pod.scheduled > 0 && pod.WantsGpu() && (!known || found->second.scheduled == 0)) {
    durations_.AddWait(pod.scheduled, std::max<telemetry::Millis>(0, pod.scheduled - pod.created));
  }
  if (HasRun(pod) && (!known || found->second.finished == 0)) {
    durations_.AddRun(RunsKeys(pod), pod.finished - pod.started);
  }
  if (known) pod.estimate = found->second.estimate;
  Touch(pod.node);
  if (!known) MakeRoomForPod();
  std::string& uid = uid_of_[PodKey(pod.ns, pod.name)];
  const auto other = pods_.find(uid);
  if (other == pods_.end() || other->second.created <= pod.created) uid = pod.uid;
  pod.version = ++version_;
  pods_[object.key] = std::move(pod);
}

// Increases the version of pods whose estimate changed, for followers of the state.
void State::SetEstimates(const std::map<std::string, Estimate>& estimates) {
  for (auto& [uid, pod] : pods_) {
    if (pod.state != "pending") continue;
    const auto found = estimates.find(uid);
    const Estimate estimate = found == estimates.end() ? Estimate{} : found->second;
    if (pod.estimate == estimate) continue;
    pod.estimate = estimate;
    pod.version = ++version_;
  }
}

// Removes an ended pod, else the first by uid, to stay within the limit.
void State::MakeRoomForPod() {
  if (pods_.size() < kMaxPods) return;
  auto victim = std::ranges::find_if(pods_, [](const auto& pod) { return HasEnded(pod.second); });
  if (victim == pods_.end()) victim = pods_.begin();
  ForgetPod(victim->first);
}

// `uid` may refer to the key of the erased entry.
void State::ForgetPod(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const auto named = uid_of_.find(PodKey(found->second.ns, found->second.name));
  if (named != uid_of_.end() && named->second == uid) uid_of_.erase(named);
  Touch(found->second.node);
  Remember(removed_pods_, ++version_, RemovedPod{found->second.ns, uid});
  pods_.erase(found);
}

void State::Touch(const std::string& node) {
  if (const auto found = nodes_.find(node); found != nodes_.end())
    found->second.version = ++version_;
}

}  // namespace nos::telemetryserver
