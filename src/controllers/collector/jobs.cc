#include "controllers/collector/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/millis.h"
#include "base/text.h"
#include "controllers/collector/records.h"
#include "controllers/pod_facts.h"

namespace nos::controllers {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kJob = "job", kQueue = "queue";
constexpr size_t kMaxTrouble = 1000;

bool IsNoWork(const cluster::OwnerReference& owner) {
  return owner.kind == "Node" || owner.kind == "DaemonSet";
}

std::pair<std::string, std::string> KeyOf(std::string_view ns, const JobName& job) {
  return {std::string(kJob), fmt::format("{}/{}/{}", ns, job.kind, job.name)};
}

std::pair<std::string, std::string> QueueKeyOf(std::string_view ns, std::string_view name) {
  return {std::string(kQueue), ns.empty() ? fmt::format("ClusterQueue/{}", name)
                                          : fmt::format("LocalQueue/{}/{}", ns, name)};
}

JobName QueueName(std::string_view ns, std::string_view name) {
  return {ns.empty() ? "ClusterQueue" : "LocalQueue", std::string(name)};
}

std::string PartKey(std::string_view kind, std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}/{}", kind, ns, name);
}

bool Waits(const Admission& admission) {
  return admission.state != "admitted" && admission.state != "finished";
}

}  // namespace

struct JobTally::Standing {
  std::map<std::string, int64_t> pods;  // by state
  Time created = Time::max(), started = Time::max(), finished{};
  bool pods_ended = true;
  std::optional<JobPart> job;
  const Admission* admission = nullptr;  // prefers one that is still pending
  std::string queue, trouble;

  int64_t Pods(const std::string& state) const {
    const auto found = pods.find(state);
    return found == pods.end() ? 0 : found->second;
  }
  bool Over() const {
    if (job) return job->finished != Time();
    return pods.empty() ? admission != nullptr && admission->state == "finished" : pods_ended;
  }
  bool Failed() const {
    if (job) return job->broke;
    return pods.empty() ? admission->reason == "Failed" : Pods("failed") > 0;
  }
  Time Finished() const {
    if (!Over()) return Time();
    return job ? job->finished : pods.empty() ? admission->at : finished;
  }
  std::string_view State() const {
    if (Over()) return Failed() ? "failed"sv : "succeeded"sv;
    if (Pods("running") > 0) return "running";
    if (admission != nullptr && Waits(*admission)) return "queued";
    return job && job->suspended ? "suspended"sv : "pending"sv;
  }
  std::string_view Why() const {
    const std::string_view state = State();
    if (state == "queued") return admission->message;
    if (state == "failed" && job) return job->why;
    return state == "pending" && pods.empty() ? std::string_view(trouble) : std::string_view();
  }
};

std::optional<JobName> JobOf(const cluster::Pod& pod) {
  if (auto above = JobAbove(pod.meta.labels)) return above;
  const auto owner = std::ranges::find(pod.meta.owners, true, &cluster::OwnerReference::controller);
  if (owner == pod.meta.owners.end() || IsNoWork(*owner)) return std::nullopt;
  const auto hash = pod.meta.labels.find("pod-template-hash");
  const std::string end = hash == pod.meta.labels.end() ? "" : "-" + hash->second;
  if (owner->kind == "ReplicaSet" && end.size() > 1 && owner->name.ends_with(end)) {
    return JobName{"Deployment", owner->name.substr(0, owner->name.size() - end.size())};
  }
  return JobName{owner->kind, owner->name};
}

void JobTally::Put(const cluster::Pod& pod, Time finished) {
  const std::string& uid = pod.meta.uid;
  const auto job = JobOf(pod);
  const std::string queue(QueueOf(pod.meta.labels));
  Remove(uid);
  if (!job && queue.empty()) return;
  Member member;
  member.state = StateOf(pod);
  member.created = pod.meta.created;
  if (pod.started) member.started = *pod.started;
  member.finished = finished;
  member.gated = !pod.scheduling_gates.empty();
  member.queue = queue;
  const auto join = [&](const Key& key, const JobName& name) {
    GroupOf(key, pod.meta.ns, name).members.insert(uid);
    member.groups.push_back(key);
  };
  if (job) {
    const Key key = KeyOf(pod.meta.ns, *job);
    member.job = key.second;
    join(key, *job);
  }
  if (!queue.empty()) join(QueueKeyOf(pod.meta.ns, queue), QueueName(pod.meta.ns, queue));
  members_.insert_or_assign(uid, std::move(member));
}

JobTally::Group& JobTally::GroupOf(const Key& key, const std::string& ns, const JobName& name) {
  changed_.insert(key);
  Group& group = groups_[key];
  if (!group.head.empty()) return group;
  group.head = {{"kind", key.first},
                {"id", key.second},
                {"namespace", ns},
                {"type", name.kind},
                {"name", name.name}};
  return group;
}

// An empty group is deleted when its removal is reported (TakeChanges).
void JobTally::Remove(const std::string& uid) {
  const auto found = members_.find(uid);
  if (found == members_.end()) return;
  for (const Key& key : found->second.groups) {
    groups_[key].members.erase(uid);
    changed_.insert(key);
  }
  members_.erase(found);
}

bool JobTally::Put(const cluster::Job& job) {
  JobPart part = PartOf(job);
  const std::string& ns = job.meta.ns;
  const JobName name = JobAbove(job.meta.labels).value_or(JobName{"Job", job.meta.name});
  const std::string part_key = PartKey("Job", ns, job.meta.name);
  const bool asks = !part.requests.empty();
  const Time ended = part.finished;
  if (asks) return PutPart(part_key, ns, name, {KeyOf(ns, name), ended, {}, std::move(part)});
  ForgetPart(part_key);
  return false;
}

bool JobTally::Put(const cluster::KueueWorkload& workload) {
  Admission part = PartOf(workload);
  const std::string& ns = workload.meta.ns;
  const auto name = JobOf(workload);
  const std::string part_key = PartKey("Workload", ns, workload.meta.name);
  const Time ended = part.state == "finished" ? part.at : Time();
  if (name && !part.requests.empty()) {
    return PutPart(part_key, ns, *name, {KeyOf(ns, *name), ended, {}, std::move(part)});
  }
  ForgetPart(part_key);
  return false;
}

bool JobTally::Put(const cluster::KueueQueue& queue) {
  const std::string &ns = queue.meta.ns, &name = queue.meta.name;
  return PutPart(PartKey("Queue", ns, name), ns, QueueName(ns, name),
                 {QueueKeyOf(ns, name), {}, {}, PartOf(queue)});
}

bool JobTally::PutPart(const std::string& part_key, const std::string& ns, const JobName& name,
                       Part part) {
  if (const auto known = parts_.find(part_key); known != parts_.end()) {
    part.trouble = known->second.trouble;
    ForgetPart(part_key);
  } else if (full() && (part.ended != Time() || !MakeRoom())) {
    return false;
  }
  GroupOf(part.group, ns, name).parts.insert(part_key);
  if (part.ended != Time()) ended_.emplace(part.ended, part_key);
  parts_.insert_or_assign(part_key, std::move(part));
  return true;
}

bool JobTally::MakeRoom() {
  if (ended_.empty()) return false;
  const std::string first = ended_.begin()->second;
  ForgetPart(first);
  return true;
}

void JobTally::ForgetPart(const std::string& part_key) {
  const auto found = parts_.find(part_key);
  if (found == parts_.end()) return;
  groups_[found->second.group].parts.erase(part_key);
  changed_.insert(found->second.group);
  ended_.erase({found->second.ended, part_key});
  parts_.erase(found);
}

void JobTally::RemovePart(std::string_view kind, std::string_view ns, std::string_view name) {
  ForgetPart(PartKey(kind, ns, name));
}

bool JobTally::SetTrouble(std::string_view ns, std::string_view job, std::string_view why) {
  const auto found = parts_.find(PartKey("Job", ns, job));
  if (found == parts_.end()) return false;
  found->second.trouble = Shortened(why, kMaxTrouble);
  changed_.insert(found->second.group);
  return true;
}

bool JobTally::Knows(std::string_view ns, std::string_view job) const {
  return parts_.contains(PartKey("Job", ns, job));
}

void JobTally::ClearPods() {
  members_.clear();
  std::erase_if(groups_, [](const auto& group) { return group.second.parts.empty(); });
  changed_.clear();
  for (auto& [key, group] : groups_) {
    group.members.clear();
    group.reported.clear();
    changed_.insert(key);
  }
}

std::vector<JsonObject> JobTally::TakeChanges() {
  std::vector<JsonObject> records;
  for (const Key& key : std::exchange(changed_, {})) {
    const auto found = groups_.find(key);
    if (found == groups_.end()) continue;
    Group& group = found->second;
    if (!group.IsThere()) {
      if (!group.reported.empty()) {
        records.push_back({{"kind", "removed"}, {"what", key.first}, {"id", key.second}});
      }
      groups_.erase(found);
      continue;
    }
    JsonObject record = key.first == kJob ? JobRecord(group) : QueueRecord(group);
    std::string text = WriteJson(Json(record));
    if (std::exchange(group.reported, text) != text) records.push_back(std::move(record));
  }
  return records;
}

JobTally::Standing JobTally::StandingOf(const Group& group) const {
  Standing all;
  for (const std::string& uid : group.members) {
    const Member& member = members_.at(uid);
    ++all.pods[member.state];
    all.created = std::min(all.created, member.created);
    if (member.started != Time()) all.started = std::min(all.started, member.started);
    all.finished = std::max(all.finished, member.finished);
    all.pods_ended = all.pods_ended && member.finished != Time();
    if (all.queue.empty()) all.queue = member.queue;
  }
  for (const std::string& key : group.parts) {
    const Part& part = parts_.at(key);
    if (const auto* job = std::get_if<JobPart>(&part.content)) {
      if (!all.job) all.job.emplace();
      Add(*job, *all.job);
      if (all.trouble.empty()) all.trouble = part.trouble;
      all.created = std::min(all.created, job->created);
      if (job->started != Time()) all.started = std::min(all.started, job->started);
      if (all.queue.empty()) all.queue = job->queue;
    } else if (const auto* admission = std::get_if<Admission>(&part.content)) {
      if (all.admission == nullptr || Waits(*admission)) all.admission = admission;
      all.created = std::min(all.created, admission->created);
      if (!admission->queue.empty()) all.queue = admission->queue;
    }
  }
  return all;
}

JsonObject JobTally::JobRecord(const Group& group) const {
  const Standing all = StandingOf(group);
  JsonObject pods;
  for (const auto& [state, count] : all.pods) pods[state] = count;
  const int64_t succeeded = all.Pods("succeeded");
  JsonObject record = group.head;
  record["queue"] = all.queue;
  record["state"] = all.State();
  record["why"] = all.Why();
  record["pods"] = std::move(pods);
  record["completions"] = all.job ? std::max(succeeded, all.job->succeeded) : succeeded;
  record["created"] = ToMillis(all.created);
  record["started"] = all.started == Time::max() ? 0 : ToMillis(all.started);
  record["finished"] = all.Over() ? ToMillis(all.Finished()) : 0;
  if (all.job) AddFields(*all.job, record);
  if (all.admission != nullptr) AddFields(*all.admission, record);
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
  for (const std::string& key : group.parts) {
    if (const auto* queue = std::get_if<QueuePart>(&parts_.at(key).content)) {
      AddFields(*queue, record);
    }
  }
  return record;
}

JsonArray JobTally::Ids(std::string_view what) const {
  JsonArray ids;
  for (const auto& [key, group] : groups_) {
    if (key.first == what && group.IsThere()) ids.emplace_back(key.second);
  }
  return ids;
}

}  // namespace nos::controllers
