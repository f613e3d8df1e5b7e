#include "controllers/collector_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/millis.h"
#include "controllers/collector_records.h"

namespace nos::controllers {
namespace {

constexpr std::string_view kJob = "job", kQueue = "queue";

std::string_view LabelOf(const cluster::Pod& pod, std::string_view key) {
  const auto found = pod.meta.labels.find(key);
  return found == pod.meta.labels.end() ? std::string_view() : found->second;
}

// A label that names what stands above the owner.
struct Above {
  std::string_view label, kind;
};
constexpr std::array<Above, 2> kAbove = {{{"jobset.sigs.k8s.io/jobset-name", "JobSet"},
                                          {"leaderworkerset.sigs.k8s.io/name", "LeaderWorkerSet"}}};

bool IsNoWork(const cluster::OwnerReference& owner) {
  return owner.kind == "Node" || owner.kind == "DaemonSet";
}

}  // namespace

std::optional<JobName> JobOf(const cluster::Pod& pod) {
  const std::string_view ray_kind = LabelOf(pod, "ray.io/originated-from-crd");
  const std::string_view ray_name = LabelOf(pod, "ray.io/originated-from-cr-name");
  if (!ray_kind.empty() && !ray_name.empty()) {
    return JobName{std::string(ray_kind), std::string(ray_name)};
  }
  for (const Above& above : kAbove) {
    if (const auto name = LabelOf(pod, above.label); !name.empty()) {
      return JobName{std::string(above.kind), std::string(name)};
    }
  }
  const auto owner = std::ranges::find(pod.meta.owners, true, &cluster::OwnerReference::controller);
  if (owner == pod.meta.owners.end() || IsNoWork(*owner)) return std::nullopt;
  const std::string_view hash = LabelOf(pod, "pod-template-hash");
  const std::string end = fmt::format("-{}", hash);
  if (owner->kind == "ReplicaSet" && !hash.empty() && owner->name.ends_with(end)) {
    return JobName{"Deployment", owner->name.substr(0, owner->name.size() - end.size())};
  }
  return JobName{owner->kind, owner->name};
}

std::string_view QueueOf(const cluster::Pod& pod) {
  return LabelOf(pod, "kueue.x-k8s.io/queue-name");
}

void JobTally::Put(const cluster::Pod& pod, Time finished) {
  const std::string& uid = pod.meta.uid;
  const auto job = JobOf(pod);
  const std::string queue(QueueOf(pod));
  Remove(uid);
  if (!job && queue.empty()) return;
  Member member;
  member.state = StateOf(pod);
  member.created = pod.meta.created;
  if (pod.started) member.started = *pod.started;
  member.finished = finished;
  member.gated = !pod.scheduling_gates.empty();
  if (job) {
    member.job = fmt::format("{}/{}/{}", pod.meta.ns, job->kind, job->name);
    JsonObject head{{"kind", kJob},      {"id", member.job},  {"namespace", pod.meta.ns},
                    {"type", job->kind}, {"name", job->name}, {"queue", queue}};
    Join({std::string(kJob), member.job}, std::move(head), uid, member);
  }
  if (!queue.empty()) {
    const std::string id = fmt::format("LocalQueue/{}/{}", pod.meta.ns, queue);
    JsonObject head{{"kind", kQueue},
                    {"id", id},
                    {"namespace", pod.meta.ns},
                    {"type", "LocalQueue"},
                    {"name", queue}};
    Join({std::string(kQueue), id}, std::move(head), uid, member);
  }
  members_.insert_or_assign(uid, std::move(member));
}

void JobTally::Join(const Key& key, JsonObject head, const std::string& uid, Member& member) {
  Group& group = groups_[key];
  group.head = std::move(head);
  group.members.insert(uid);
  member.groups.push_back(key);
  changed_.insert(key);
}

// A group that nobody is in any more goes when that is told.
void JobTally::Remove(const std::string& uid) {
  const auto found = members_.find(uid);
  if (found == members_.end()) return;
  for (const Key& key : found->second.groups) {
    groups_[key].members.erase(uid);
    changed_.insert(key);
  }
  members_.erase(found);
}

void JobTally::Clear() {
  members_.clear();
  groups_.clear();
  changed_.clear();
}

std::vector<JsonObject> JobTally::TakeChanges() {
  std::vector<JsonObject> records;
  for (const Key& key : std::exchange(changed_, {})) {
    const auto found = groups_.find(key);
    if (found == groups_.end()) continue;
    Group& group = found->second;
    if (group.members.empty()) {
      if (!group.told.empty()) {
        records.push_back({{"kind", "removed"}, {"what", key.first}, {"id", key.second}});
      }
      groups_.erase(found);
      continue;
    }
    JsonObject record = key.first == kJob ? JobRecord(group) : QueueRecord(group);
    std::string text = WriteJson(Json(record));
    if (std::exchange(group.told, text) != text) records.push_back(std::move(record));
  }
  return records;
}

JsonObject JobTally::JobRecord(const Group& group) const {
  std::map<std::string, int64_t> states;
  Time created = Time::max(), started = Time::max(), finished{};
  bool ended = true;
  for (const std::string& uid : group.members) {
    const Member& member = members_.at(uid);
    ++states[member.state];
    created = std::min(created, member.created);
    if (member.started != Time()) started = std::min(started, member.started);
    finished = std::max(finished, member.finished);
    ended = ended && member.finished != Time();
  }
  JsonObject pods;
  for (const auto& [state, count] : states) pods[state] = count;
  JsonObject record = group.head;
  record["pods"] = std::move(pods);
  record["completions"] = states["succeeded"];
  record["created"] = ToMillis(created);
  record["started"] = started == Time::max() ? 0 : ToMillis(started);
  record["finished"] = ended ? ToMillis(finished) : 0;
  return record;
}

JsonObject JobTally::QueueRecord(const Group& group) const {
  std::set<std::string> jobs;
  int64_t waiting = 0, admitted = 0;
  for (const std::string& uid : group.members) {
    const Member& member = members_.at(uid);
    if (!member.job.empty()) jobs.insert(member.job);
    if (member.finished != Time()) continue;
    ++(member.gated ? waiting : admitted);
  }
  JsonObject record = group.head;
  record["jobs"] = static_cast<int64_t>(jobs.size());
  record["pods"] = {{"waiting", waiting}, {"admitted", admitted}};
  return record;
}

JsonArray JobTally::Ids(std::string_view what) const {
  JsonArray ids;
  for (const auto& [key, group] : groups_) {
    if (key.first == what && !group.members.empty()) ids.emplace_back(key.second);
  }
  return ids;
}

}  // namespace nos::controllers
