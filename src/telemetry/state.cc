#include "telemetry/state.h"

#include <algorithm>

namespace nos::telemetry {
namespace {

constexpr size_t kMostPods = 200'000, kMostNodes = 20'000, kMostThings = 50'000;
constexpr size_t kMostSources = 40'000, kMostSubjects = 1'000'000;
// Of which readings have come and that are in no layout, yet.
constexpr size_t kMostUnplaced = 10'000;

Json WithoutTime(const Json& body) {
  Json copy = body;
  copy.get_object().erase("at");
  return copy;
}

bool SameButTime(const Json& a, const Json& b) { return WithoutTime(a) == WithoutTime(b); }

bool BoolOr(const Json& object, std::string_view key, bool fallback) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_bool() ? value->get_bool() : fallback;
}

std::string SubjectOf(const Gpu& gpu) { return "gpu/" + gpu.uuid; }
std::string SubjectOf(const Instance& instance) { return "instance/" + instance.uuid; }
std::string PodKey(const std::string& ns, const std::string& name) { return ns + "/" + name; }

// (pod, subject) of all that is held.
std::set<std::pair<std::string, std::string>> HeldIn(const Layout& layout) {
  std::set<std::pair<std::string, std::string>> held;
  for (const Gpu& gpu : layout.gpus) {
    for (const Holder& holder : gpu.holders) {
      held.emplace(PodKey(holder.ns, holder.pod), SubjectOf(gpu));
    }
    for (const Instance& instance : gpu.instances) {
      for (const Holder& holder : instance.holders) {
        held.emplace(PodKey(holder.ns, holder.pod), SubjectOf(instance));
      }
    }
  }
  return held;
}

Pod PodOf(const Record& record, const std::string& uid) {
  const Json& body = record.body;
  Pod pod;
  pod.uid = uid;
  pod.ns = std::string(FindString(body, "namespace"));
  pod.name = std::string(FindString(body, "name"));
  pod.state = std::string(FindString(body, "state"));
  pod.node = std::string(FindString(body, "node"));
  pod.quota = std::string(FindString(body, "quota"));
  pod.at = record.at;
  pod.created = IntegerOr(body, "created", 0);
  pod.scheduled = IntegerOr(body, "scheduled", 0);
  pod.started = IntegerOr(body, "started", 0);
  pod.finished = IntegerOr(body, "finished", 0);
  pod.ends = IntegerOr(body, "ends", 0);
  pod.priority = IntegerOr(body, "priority", 0);
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
  if (recent.size() > kMostRecent) recent.pop_front();
}

Record RemovedAt(Millis at, const std::string& what, const std::string& key) {
  return {at,
          "removed",
          {{"kind", "removed"}, {"at", at}, {"what", what}, {"id", key}},
          Removed{what, key}};
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
    return request.second > 0 && request.first.find('/') != std::string::npos;  // extended ones
  });
}

double Pod::Request(std::string_view resource) const {
  for (const auto& [asked, amount] : requests) {
    if (asked == resource) return amount;
  }
  return 0;
}

State::Effects State::Apply(const Record& record, std::string_view source, Millis latest) {
  Effects effects;
  now_ = std::max(now_, std::min(record.at, latest));
  if (auto known = fresh_.find(source); known != fresh_.end()) {
    known->second = std::max(known->second, record.at);
  } else if (fresh_.size() < kMostSources) {
    fresh_.emplace(source, record.at);
  }
  if (const auto* readings = std::get_if<Readings>(&record.what)) {
    ApplyReadings(record, *readings);
  } else if (const auto* layout = std::get_if<Layout>(&record.what)) {
    ApplyLayout(record, *layout, effects);
  } else if (const auto* removed = std::get_if<Removed>(&record.what)) {
    ApplyRemoved(record, *removed, effects);
  } else if (const auto* present = std::get_if<Present>(&record.what)) {
    ApplyPresent(record, std::min(record.at, latest), *present, effects);
  } else if (const auto* happening = std::get_if<Happening>(&record.what)) {
    effects.changes.push_back({record.at, record.kind, happening->object, record.body});
  } else if (const auto* object = std::get_if<Object>(&record.what)) {
    switch (object->kind) {
      case Object::Kind::kPod:
        ApplyPod(record, *object, effects);
        break;
      case Object::Kind::kNode:
        ApplyNode(record, *object, effects);
        break;
      case Object::Kind::kQuota:
        if (ApplyThing(record, *object, quotas_, effects)) quotas_version_ = ++version_;
        break;
      case Object::Kind::kJob:
        if (ApplyThing(record, *object, jobs_, effects)) ++version_;
        break;
      case Object::Kind::kQueue:
        if (ApplyThing(record, *object, queues_, effects)) ++version_;
        break;
      case Object::Kind::kDecision: {
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
  } else if (Gone::IsRecord(record)) {
    gone_.Read(record);
  } else {
    return false;
  }
  return true;
}

// With the time when it was made ("made"), which stays when it is told again: as the reporter says,
// or as was told of it before, or when it is told of first.
Json State::DecisionOf(const Record& record, const std::string& id) const {
  Json decision = record.body;
  Millis made = IntegerOr(decision, "made", 0);
  if (made <= 0 || made > record.at) {
    made = record.at;
    for (const auto& [version, known] : decisions_) {
      if (FindString(known, "id") == id) made = std::min(made, IntegerOr(known, "made", made));
    }
  }
  decision.get_object()["made"] = made;
  return decision;
}

// Whether what is told of something that is not known was so before it went. Then it is of the past
// alone, in which it is there until then.
bool State::IsOver(const Record& record, const std::string& key, Effects& effects) const {
  const Millis since = gone_.Since(record.kind, key);
  if (record.at >= since) return false;
  effects.changes.push_back({record.at, record.kind, key, record.body});
  if (since == gone_.ListedAt(record.kind)) {
    const Record removed = RemovedAt(since, record.kind, key);
    effects.changes.push_back({since, removed.kind, record.kind + "/" + key, removed.body});
  }
  return true;
}

// A node that is not known and was not there when all were listed, later than `at`, was removed by
// then.
void State::ForgetUnlisted(const std::string& node, Millis at, Effects& effects) {
  const Millis listed = gone_.ListedAt("node");
  if (at >= listed || nodes_.contains(node) || gone_nodes_.contains(node)) return;
  ApplyRemoved(RemovedAt(listed, "node", node), {"node", node}, effects);
}

void State::ApplyReadings(const Record& record, const Readings& readings) {
  const auto found = latest_.find(readings.subject);
  const size_t most = std::min(kMostSubjects, node_of_.size() + kMostUnplaced);
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
  if (nodes_.size() >= kMostNodes) return nullptr;
  Node& node = nodes_[name];
  node.name = name;
  return &node;
}

// A node that is gone does not come back by what its agent tells, but by being told of anew.
void State::KeepForReturn(const Record& record, const Layout& layout, Effects& effects) {
  GoneNode& gone = gone_nodes_.at(layout.node);
  if (record.at < gone.layout_at) return;
  if (gone.layout_at < 0 || gone.layout != layout) {
    effects.changes.push_back({record.at, record.kind, layout.node, record.body});
  }
  gone.layout_at = record.at;
  gone.layout = layout;
}

void State::ApplyLayout(const Record& record, const Layout& layout, Effects& effects) {
  ForgetUnlisted(layout.node, record.at, effects);
  if (gone_nodes_.contains(layout.node)) return KeepForReturn(record, layout, effects);
  Node* node = NodeNamed(layout.node);
  if (node == nullptr) return;
  const bool same = node->layout_at >= 0 && node->layout == layout;
  if (record.at >= node->layout_at) {
    if (!same) Exchange(*node, layout, record.at, effects);
    node->layout_at = record.at;
    node->version = ++version_;
  }
  if (!same) effects.changes.push_back({record.at, record.kind, layout.node, record.body});
}

void State::Exchange(Node& node, const Layout& layout, Millis at, Effects& effects) {
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
  for (const Gpu& gpu : node.layout.gpus) {
    for (const Instance& instance : gpu.instances) node_of_.erase(SubjectOf(instance));
  }
  std::set<std::string> gone;
  for (const Gpu& gpu : node.layout.gpus) {
    for (const Instance& instance : gpu.instances) gone.insert(SubjectOf(instance));
  }
  node.layout = layout;
  for (const Gpu& gpu : node.layout.gpus) {
    node_of_[SubjectOf(gpu)] = node.name;
    for (const Instance& instance : gpu.instances) {
      node_of_[SubjectOf(instance)] = node.name;
      gone.erase(SubjectOf(instance));
    }
  }
  for (const std::string& subject : gone) latest_.erase(subject);
}

void State::ApplyPod(const Record& record, const Object& object, Effects& effects) {
  const auto found = pods_.find(object.key);
  const bool known = found != pods_.end();
  if (!known && IsOver(record, object.key, effects)) return;
  if (known && SameButTime(found->second.body, record.body)) {
    found->second.at = std::max(found->second.at, record.at);
    return;
  }
  effects.changes.push_back({record.at, record.kind, object.key, record.body});
  if (known && record.at < found->second.at) return;
  Pod pod = PodOf(record, object.key);
  if (pod.scheduled > 0 && pod.WantsGpu() && (!known || found->second.scheduled == 0)) {
    durations_.AddWait(pod.scheduled, std::max<Millis>(0, pod.scheduled - pod.created));
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

// Who follows the state hears of those that have become another.
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

// One that has ended goes first, else the first by uid: bounded is bounded.
void State::MakeRoomForPod() {
  if (pods_.size() < kMostPods) return;
  auto victim = std::ranges::find_if(pods_, [](const auto& pod) { return HasEnded(pod.second); });
  if (victim == pods_.end()) victim = pods_.begin();
  ForgetPod(victim->first);
}

// `uid` may be the key of what is erased.
void State::ForgetPod(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const auto named = uid_of_.find(PodKey(found->second.ns, found->second.name));
  if (named != uid_of_.end() && named->second == uid) uid_of_.erase(named);
  Touch(found->second.node);
  Remember(removed_pods_, ++version_, RemovedPod{found->second.ns, uid});
  pods_.erase(found);
}

void State::ApplyNode(const Record& record, const Object& object, Effects& effects) {
  ForgetUnlisted(object.key, record.at, effects);
  GoneNode back;
  if (const auto gone = gone_nodes_.find(object.key); gone != gone_nodes_.end()) {
    if (record.at < gone->second.at) {
      effects.changes.push_back({record.at, record.kind, object.key, record.body});
      return;
    }
    back = std::move(gone->second);
    gone_nodes_.erase(gone);
  }
  Node* node = NodeNamed(object.key);
  if (node == nullptr) return;
  const bool same = node->record_at >= 0 && SameButTime(node->body, record.body);
  if (!same) effects.changes.push_back({record.at, record.kind, object.key, record.body});
  if (record.at < node->record_at) return;
  node->record_at = record.at;
  if (back.layout_at >= 0) {
    ApplyLayout({back.layout_at, "layout", LayoutRecord(back.layout_at, back.layout), {}},
                back.layout, effects);
  }
  if (same) return;
  node->version = ++version_;
  node->body = record.body;
  node->ready = BoolOr(record.body, "ready", true);
  node->schedulable = BoolOr(record.body, "schedulable", true);
  const Json none = JsonObject();
  const Json* allocatable = Find(record.body, "allocatable");
  const Json* requested = Find(record.body, "requested");
  const auto free = [&](std::string_view key) {
    return NumberOr(allocatable == nullptr ? none : *allocatable, key, 0) -
           NumberOr(requested == nullptr ? none : *requested, key, 0);
  };
  node->free_cpu = free("cpu");
  node->free_memory = free("memory");
}

bool State::ApplyThing(const Record& record, const Object& object, Things& things,
                       Effects& effects) {
  const auto found = things.find(object.key);
  if (found == things.end() && IsOver(record, object.key, effects)) return false;
  if (found == things.end() && things.size() >= kMostThings) return false;
  const bool same = found != things.end() && SameButTime(found->second, record.body);
  if (!same) effects.changes.push_back({record.at, record.kind, object.key, record.body});
  const bool late = found != things.end() && record.at < IntegerOr(found->second, "at", 0);
  if (late) return false;
  things[object.key] = record.body;
  return !same;
}

State::Things* State::ThingsOf(std::string_view what) {
  return what == "quota" ? &quotas_ : what == "job" ? &jobs_ : what == "queue" ? &queues_ : nullptr;
}

void State::ApplyRemoved(const Record& record, const Removed& removed, Effects& effects) {
  effects.changes.push_back(
      {record.at, record.kind, removed.what + "/" + removed.key, record.body});
  if (removed.what == "pod") {
    const auto found = pods_.find(removed.key);
    if (found != pods_.end() && found->second.at > record.at) return;
    if (found != pods_.end()) ForgetPod(removed.key);
    gone_.Remove(removed.what, removed.key, record.at);
  } else if (removed.what == "node") {
    const auto found = nodes_.find(removed.key);
    if (found != nodes_.end() && found->second.record_at > record.at) return;
    GoneNode& gone = gone_nodes_[removed.key];
    gone.at = std::max(gone.at, record.at);
    if (gone_nodes_.size() > kMostRecent) {
      gone_nodes_.erase(std::ranges::min_element(gone_nodes_, {},
                                                 [](const auto& each) { return each.second.at; }));
    }
    if (found == nodes_.end()) return;
    Exchange(found->second, {}, record.at, effects);
    nodes_.erase(found);
    fresh_.erase("node/" + removed.key);
    ++version_;
  } else if (Things* things = ThingsOf(removed.what)) {
    const auto found = things->find(removed.key);
    if (found != things->end()) {
      const Millis told = IntegerOr(found->second, "at", 0);
      if (told > record.at) {  // it was there again: in what is written down, too
        effects.changes.push_back({told, removed.what, removed.key, found->second});
        return;
      }
      things->erase(found);
    }
    gone_.Remove(removed.what, removed.key, record.at);
    ++version_;
    if (things == &quotas_) quotas_version_ = version_;
  } else if (removed.what == "gpu") {
    latest_.erase("gpu/" + removed.key);
  }
}

// As if each of the others had been told to be gone.
void State::ApplyPresent(const Record& record, Millis listed, const Present& present,
                         Effects& effects) {
  const Things* things = ThingsOf(present.what);
  if (present.what != "pod" && present.what != "node" && things == nullptr) return;
  std::vector<std::string> gone;
  const auto look = [&](const std::string& key, Millis told) {
    if (told <= record.at && !present.keys.contains(key)) gone.push_back(key);
  };
  if (present.what == "pod") {
    for (const auto& [uid, pod] : pods_) look(uid, pod.at);
  } else if (present.what == "node") {
    for (const auto& [name, node] : nodes_) look(name, std::max(node.layout_at, node.record_at));
  } else {
    for (const auto& [key, body] : *things) look(key, IntegerOr(body, "at", 0));
  }
  for (const std::string& key : gone) {
    ApplyRemoved(RemovedAt(record.at, present.what, key), {present.what, key}, effects);
  }
  Gone listing;
  listing.List(present.what, listed);
  gone_.List(present.what, listed);
  effects.changes.push_back({listed, "gone", present.what, listing.ToJson(listed)});
}

void State::Touch(const std::string& node) {
  if (const auto found = nodes_.find(node); found != nodes_.end())
    found->second.version = ++version_;
}

}  // namespace nos::telemetry
