#include "controllers/scheduler/binding_cycle.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/scheduler/pods.h"
#include "controllers/scheduler/post.h"
#include "reconcile/node_write.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"

namespace nos::controllers {

namespace {

// True if the request may have taken effect although it was not answered.
bool IsUncertain(const Status& status) {
  return status.code() == Code::kDeadline || status.code() == Code::kUnavailable;
}

// True if the API server has refused the request, so that it never takes effect. A conflict may
// come from the request itself, sent twice by a connection that broke.
bool IsRefused(const Status& status) {
  return status.code() == Code::kPermission || status.code() == Code::kNotFound ||
         status.code() == Code::kInvalid;
}

// The path of the object that the request wrote.
std::string PathOfWritten(const kube::ApiRequest& write, const Json& answer) {
  if (write.method != "POST") return write.path;
  return fmt::format("{}/{}", write.path, FindString(answer, "metadata", "name"));
}

// The API server drops fields of a feature that is switched off, without an error.
Status CheckStored(const kube::ApiRequest& write, const Json& answer) {
  const Json* status = Find(write.body, "status");
  const Json* stored = Find(answer, "status");
  if (status == nullptr || !status->is_object() || stored == nullptr) return Status::Ok();
  for (const auto& [field, value] : status->get_object()) {
    if (value.is_null() || Find(*stored, field) != nullptr) continue;
    return Invalid(fmt::format("the API server has dropped status.{} of {}: a feature gate is off",
                               std::string_view(field), write.path));
  }
  return Status::Ok();
}

// The node to which the API server has bound the pod, "" if none. It lists, because the scheduler's
// role may not get pods. Error: kNotFound.
Result<std::string> NodeOf(const cluster::Pod& pod, kube::Client& client) {
  kube::ListOptions options;
  options.field_selector = "metadata.name=" + pod.meta.name;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, pod.meta.ns, options));
  for (const Json& item : list.items) {
    if (FindString(item, "metadata", "uid") != pod.meta.uid) continue;
    return std::string(FindString(item, "spec", "nodeName"));
  }
  return NotFound(fmt::format("pod {} is gone", pod.Key()));
}

}  // namespace

struct BindingCycle::Answer {
  std::string key;
  uint64_t attempt = 0;  // the binding that it answers
  enum class To { kPreBind, kBind, kRead } to = To::kPreBind;
  Status status;
  std::string node;           // kRead: where the pod is bound, if it is
  std::string path, version;  // kPreBind: of the object that was written
  std::string refused;        // kPreBind: path of the request that never takes effect
};

struct BindingCycle::Results {
  kube::Inbox<Answer> answers;
  kube::Inbox<std::pair<PartitionWrite, Status>> instance_requests;
  std::function<void()> wake;

  void Put(Answer answer) {
    answers.Put(std::move(answer));
    if (wake) wake();
  }
};

BindingCycle::BindingCycle(scheduling::Engine& engine, PartitionRequests& requests,
                           kube::Workers* workers, std::function<void()> wake, Options options,
                           Callbacks callbacks)
    : engine_(engine),
      partition_requests_(requests),
      workers_(workers),
      options_(options),
      callbacks_(std::move(callbacks)),
      results_(std::make_shared<Results>()) {
  results_->wake = std::move(wake);
}

scheduling::Verdict BindingCycle::Assume(const Pod& pod, const scheduling::Framework& framework,
                                         const cluster::NodeInfo& node) {
  Binding& binding = bindings_[pod->Key()];
  binding = {pod, &framework, node.node->meta.name};
  binding.attempt = ++attempts_;
  binding.pod = scheduling::WithInstances(framework, engine_.PrecomputedOf(framework), node, pod);
  binding.awaits_instances = binding.pod != pod;
  engine_.Assume(binding.pod, binding.node);
  scheduling::Verdict reserved = engine_.Reserve(framework, *pod, binding.node, binding.state);
  binding.fits = engine_.snapshot().Share(binding.node);
  return reserved;
}

bool BindingCycle::Adopt(const Pod& pod, const scheduling::Framework& framework, Time now) {
  const std::string node = engine_.NomineeNode(pod->Key());
  if (node.empty() || framework.partitioned_by() != scheduling::PartitionedBy::kScheduler)
    return false;
  auto self = std::make_shared<cluster::Pod>(*pod);
  self->nominated_node = node;  // the watch may show an older value
  auto promised = scheduling::BeingCreatedFor(*self, engine_.snapshot());
  if (!promised) return false;
  if (engine_.WhyNotByQuota(framework, *pod, engine_.snapshot().Find(node))) return false;
  self->promised = *std::move(promised);
  if (!partition_requests_.Adopt(*engine_.snapshot().Find(node)->node, *self, now)) return false;
  Binding& binding = bindings_[pod->Key()];
  binding = {std::move(self), &framework, node};
  binding.attempt = ++attempts_;
  binding.awaits_instances = true;
  engine_.Assume(binding.pod, node);
  const scheduling::Verdict reserved = engine_.Reserve(framework, *pod, node, binding.state);
  binding.seen = engine_.snapshot().Share(node);
  const std::string why = reserved.fits() ? WhyNoLongerFits(binding) : reserved.message;
  if (!why.empty()) Release(pod->Key(), why, now);
  return true;
}

void BindingCycle::JoinGang(const std::string& key, const std::string& gang, size_t minimum) {
  Binding& binding = bindings_.at(key);
  binding.gang = gang;
  binding.gang_minimum = minimum;
  binding.held_back = true;
}

void BindingCycle::LeaveGang(const std::string& key) { bindings_.at(key).gang.clear(); }

void BindingCycle::Abandon(const std::string& key) {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  Binding& binding = found->second;
  if (binding.awaits_instances)
    partition_requests_.Drop(binding.node, *binding.pod, PartitionRequests::End::kGivenUp);
  engine_.Unreserve(*binding.framework, *binding.pod, binding.node, binding.state);
  engine_.Forget(key);
  bindings_.erase(found);
}

void BindingCycle::Start(const std::string& key, kube::Client& client, Time now) {
  Binding& binding = bindings_.at(key);
  if (binding.awaits_instances) partition_requests_.Want(binding.node, *binding.pod, now);
  preparing_.insert(key);
  preparing_on_[binding.node].insert(key);
  PreBind(binding, client, now);
}

void BindingCycle::Resume(const std::string& key, kube::Client& client, Time now) {
  Binding& binding = bindings_.at(key);
  if (std::exchange(binding.held_back, false)) PreBind(binding, client, now);
}

void BindingCycle::Bind(const std::string& key, kube::Client& client) {
  SendBind(bindings_.at(key), client);
}

void BindingCycle::CollectResults(Time now) {
  for (const Answer& answer : results_->answers.TakeAll()) ApplyAnswer(answer, now);
  for (const auto& [write, status] : results_->instance_requests.TakeAll()) {
    partition_requests_.Written(write, status);
    has_news_ = true;
    for (const std::string& key : write.pods) {
      if (preparing_.contains(key)) due_.insert(key);
    }
  }
}

void BindingCycle::ExpireTimeouts(kube::Client& client, Time now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Binding& binding = bindings_.at(deadlines_.begin()->second);
    SetDeadline(binding, Time::max());
    const bool unconfirmed = binding.stage == Stage::kUnconfirmed;
    unconfirmed ? ReadBack(binding, client) : void(due_.insert(binding.pod->Key()));
  }
}

// Pods whose node and volumes are unchanged are left out: PreBind would give the same answer.
void BindingCycle::Step(kube::Client& client, Time now) {
  has_news_ = false;
  while (!due_.empty()) {
    const std::string key = due_.extract(due_.begin()).value();
    PreBind(bindings_.at(key), client, now);
  }
}

void BindingCycle::RequestInstances(const PartitionRequests::FindNode& find, kube::Client& client) {
  for (PartitionWrite& write : partition_requests_.Due(engine_.snapshot(), find)) {
    Log(LogLevel::kInfo, "requesting partitioning of GPUs",
        {{"node", write.node}, {"plan", write.plan}, {"pods", std::to_string(write.pods.size())}});
    Post(workers_, client, [results = results_, write = std::move(write)](kube::Client& with) {
      Status answer =
          reconcile::PatchNodeAnnotations(with, write.node, write.patch, write.resource_version)
              .status();
      results->instance_requests.Put({write, std::move(answer)});
      if (results->wake) results->wake();
    });
  }
}

void BindingCycle::OnNodeChange(std::string_view node) {
  const auto on = preparing_on_.find(node);
  if (on != preparing_on_.end()) due_.insert(on->second.begin(), on->second.end());
}

void BindingCycle::OnPodUpdate(const Pod& pod, Time now) {
  const std::string key = pod->Key();
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  Binding& binding = found->second;
  const bool there = RunsSomewhere(pod) && pod->node_name == binding.node &&
                     pod->meta.uid == binding.pod->meta.uid;
  if (!there) return RollBack(key, std::nullopt, false, now);
  // The answer to the Bind call may come later than the watch event.
  if (binding.stage != Stage::kPreparing) ReportBound(binding, now);
  Remove(key, PartitionRequests::End::kServed);
}

const BindingCycle::Binding* BindingCycle::Find(const std::string& key) const {
  const auto found = bindings_.find(key);
  return found == bindings_.end() ? nullptr : &found->second;
}

std::optional<Time> BindingCycle::NextDeadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void BindingCycle::SetDeadline(Binding& binding, Time deadline) {
  const std::string key = binding.pod->Key();
  if (binding.deadline != Time::max()) deadlines_.erase({binding.deadline, key});
  binding.deadline = deadline;
  if (deadline != Time::max()) deadlines_.emplace(deadline, key);
}

void BindingCycle::SetStage(Binding& binding, Stage stage) {
  binding.stage = stage;
  const bool unanswered = stage == Stage::kBinding || stage == Stage::kUnconfirmed;
  const std::string key = binding.pod->Key();
  unanswered ? void(unanswered_.insert(key)) : void(unanswered_.erase(key));
}

void BindingCycle::EndPreparing(const Binding& binding) {
  const std::string key = binding.pod->Key();
  if (preparing_.erase(key) == 0) return;
  due_.erase(key);
  due_on_context_.erase(key);
  const auto on = preparing_on_.find(binding.node);
  on->second.erase(key);
  if (on->second.empty()) preparing_on_.erase(on);
}

// Partitioning comes before the PreBind plugins, because it may fail and what they write for
// volumes cannot be undone. The pod is bound when nothing is left to be done.
void BindingCycle::PreBind(Binding& binding, kube::Client& client, Time now) {
  if (binding.writes > 0) return;
  const std::string key = binding.pod->Key();
  binding.seen = engine_.snapshot().Share(binding.node);
  if (binding.seen == nullptr) return Release(key, "the node is gone", now);
  SetDeadline(binding, Time::max());
  scheduling::Progress progress = CheckInstances(binding, now);
  if (progress.kind == scheduling::Progress::Kind::kReady) {
    if (binding.held_back) return callbacks_.gang_member_waits(binding.gang);
    due_on_context_.insert(key);
    progress = RunPreBindPlugins(binding, now);
  }
  if (progress.kind == scheduling::Progress::Kind::kFailed) {
    // A later plan may succeed on the same node.
    const bool partitioning = binding.awaits_instances;
    return Release(key, progress.message, now,
                   partitioning ? RetryOn::kSameNode : RetryOn::kAnyNode);
  }
  if (progress.until) SetDeadline(binding, *progress.until);
  const bool writes = !progress.writes.empty();
  binding.ready = progress.kind == scheduling::Progress::Kind::kReady && !writes;
  const std::string why = binding.ready || writes ? WhyNoLongerFits(binding) : "";
  if (!why.empty()) return Release(key, why, now);
  if (!binding.ready && preparing_.size() > options_.max_preparing) {
    return Release(key, "too many pods wait for their volumes or for GPUs to be partitioned", now,
                   RetryOn::kSameNode);
  }
  if (binding.ready && binding.gang.empty()) return SendBind(binding, client);
  if (binding.ready) callbacks_.gang_member_waits(binding.gang);
  SendWrites(binding, std::move(progress.writes), client);
}

// Combines the answers of all plugins: failed if one failed, ready if all are ready.
scheduling::Progress BindingCycle::RunPreBindPlugins(Binding& binding, Time now) const {
  scheduling::Progress all;
  for (const scheduling::PreBindPlugin* plugin : binding.framework->pre_binders()) {
    scheduling::Progress progress =
        plugin->PreBind(*binding.pod, binding.node, engine_.snapshot(), now, binding.state);
    if (progress.kind == scheduling::Progress::Kind::kFailed) return progress;
    std::ranges::move(progress.writes, std::back_inserter(all.writes));
    if (progress.kind == scheduling::Progress::Kind::kReady) continue;
    all.kind = progress.kind;
    if (progress.until) all.until = std::min(all.until.value_or(Time::max()), *progress.until);
  }
  return all;
}

// kReady: the instances exist, or the pod needs none.
scheduling::Progress BindingCycle::CheckInstances(Binding& binding, Time now) {
  if (!binding.awaits_instances) return {};
  scheduling::Progress progress = partition_requests_.Look(*binding.pod, *binding.seen, now);
  if (progress.kind == scheduling::Progress::Kind::kReady) {
    binding.awaits_instances = false;
    partition_requests_.Drop(binding.node, *binding.pod, PartitionRequests::End::kServed);
  } else {
    ReportWaiting(binding, progress, now);
  }
  return progress;
}

// Before the report is due, moves the deadline to the time of the report.
void BindingCycle::ReportWaiting(Binding& binding, scheduling::Progress& progress, Time now) {
  const bool waits = progress.kind == scheduling::Progress::Kind::kWaits && progress.until;
  if (!waits || binding.reported_waiting) return;
  const Time due = *progress.until - options_.instances_deadline + options_.report_waiting_after;
  if (now < due) {
    progress.until = std::min(*progress.until, due);
    return;
  }
  binding.reported_waiting = true;
  callbacks_.waits_for_instances(binding, progress.message, now);
}

// The node may have filled up since the decision, so filters run again. Plugins that reserved
// something for this pod are skipped: they would count its own reservation against it. Empty: the
// pod fits.
std::string BindingCycle::WhyNoLongerFits(Binding& binding) const {
  if (binding.seen == binding.fits) return "";
  cluster::ClusterSnapshot without = engine_.snapshot();
  if (!without.Vacate(*binding.pod, binding.node).ok()) return "";
  const scheduling::Cycle cycle = binding.framework->PreFilter(*binding.pod, without);
  if (!cycle.verdict.fits()) return cycle.verdict.message;
  for (const scheduling::FilterPlugin* plugin : binding.framework->filters()) {
    if (dynamic_cast<const scheduling::ReservePlugin*>(plugin) != nullptr ||
        plugin->PartitionsGpus()) {
      continue;
    }
    const scheduling::Verdict verdict =
        plugin->Filter(cycle.state, *binding.pod, *without.Find(binding.node));
    if (!verdict.fits()) return verdict.message;
  }
  binding.fits = binding.seen;
  return "";
}

void BindingCycle::SendWrites(Binding& binding, std::vector<kube::ApiRequest> writes,
                              kube::Client& client) {
  for (kube::ApiRequest& write : writes) {
    ++binding.writes;
    auto call = [results = results_, key = binding.pod->Key(), attempt = binding.attempt,
                 write = std::move(write)](kube::Client& with) {
      const Result<Json> written = with.Send(write);
      Answer answer{key, attempt, Answer::To::kPreBind, written.status(), {}, {}, {}, {}};
      if (IsRefused(written.status())) answer.refused = write.path;
      if (written.ok()) {
        answer.status = CheckStored(write, *written);
        answer.path = PathOfWritten(write, *written);
        answer.version = FindString(*written, "metadata", "resourceVersion");
      }
      results->Put(std::move(answer));
    };
    Post(workers_, client, std::move(call));
  }
}

void BindingCycle::SendBind(Binding& binding, kube::Client& client) {
  EndPreparing(binding);
  SetStage(binding, Stage::kBinding);
  SetDeadline(binding, Time::max());
  auto call = [results = results_, pod = binding.pod, node = binding.node,
               attempt = binding.attempt](kube::Client& with) {
    Status bound = with.Bind(pod->meta.ns, pod->meta.name, node, pod->meta.uid);
    results->Put({pod->Key(), attempt, Answer::To::kBind, std::move(bound), {}, {}, {}, {}});
  };
  Post(workers_, client, std::move(call));
}

void BindingCycle::ReadBack(const Binding& binding, kube::Client& client) {
  auto call = [results = results_, pod = binding.pod,
               attempt = binding.attempt](kube::Client& with) {
    Answer answer{pod->Key(), attempt, Answer::To::kRead, {}, {}, {}, {}, {}};
    const Result<std::string> node = NodeOf(*pod, with);
    node.ok() ? void(answer.node = *node) : void(answer.status = node.status());
    results->Put(std::move(answer));
  };
  Post(workers_, client, std::move(call));
}

void BindingCycle::ApplyAnswer(const Answer& answer, Time now) {
  const auto found = bindings_.find(answer.key);
  if (found == bindings_.end() || found->second.attempt != answer.attempt) return;
  if (answer.to == Answer::To::kBind) return ApplyBindAnswer(found->second, answer.status, now);
  if (answer.to == Answer::To::kRead) return ApplyReadAnswer(found->second, answer, now);
  Binding& binding = found->second;
  --binding.writes;
  has_news_ = true;
  if (!answer.version.empty()) {
    auto* versions = binding.state.Get<scheduling::WrittenVersions>();
    if (versions == nullptr) versions = &binding.state.Set(scheduling::WrittenVersions());
    versions->by_path[answer.path] = answer.version;
  }
  if (!answer.refused.empty()) {
    auto* refused = binding.state.Get<scheduling::RefusedWrites>();
    if (refused == nullptr) refused = &binding.state.Set(scheduling::RefusedWrites());
    refused->paths.insert(answer.refused);
  }
  if (preparing_.contains(answer.key)) due_.insert(answer.key);
  if (!answer.status.ok()) Release(answer.key, answer.status.ToString(), now);
}

// A conflict may come from an earlier binding of this scheduler that was not answered.
void BindingCycle::ApplyBindAnswer(Binding& binding, const Status& status, Time now) {
  const std::string key = binding.pod->Key();
  if (status.ok()) {
    SetStage(binding, Stage::kBound);
    ReportBound(binding, now);
  } else if (IsUncertain(status) || status.code() == Code::kConflict) {
    SetStage(binding, Stage::kUnconfirmed);
    binding.bind_error = status.ToString();
    const bool answered = status.code() == Code::kConflict;
    SetDeadline(binding, answered ? now : now + options_.reads.After(++binding.reads));
  } else if (status.code() == Code::kNotFound) {
    RollBack(key, std::nullopt, false, now);
  } else {
    Release(key, status.ToString(), now);
  }
}

void BindingCycle::ApplyReadAnswer(Binding& binding, const Answer& answer, Time now) {
  const std::string key = binding.pod->Key();
  const bool gone = answer.status.code() == Code::kNotFound;
  if (!answer.status.ok() && !gone) {  // the outcome is unknown, so the reservation is kept
    Log(LogLevel::kWarn, "failed to read Pod after unanswered binding",
        {{"pod", key}, {"node", binding.node}, {"error", answer.status.ToString()}});
    SetDeadline(binding, now + options_.reads.After(++binding.reads));
  } else if (!gone && answer.node == binding.node) {
    SetStage(binding, Stage::kBound);
    ReportBound(binding, now);
  } else if (!gone && answer.node.empty()) {
    Release(key, std::string(binding.bind_error), now, RetryOn::kSameNode);
  } else {  // it is deleted or bound elsewhere, which the watch will show
    RollBack(key, std::nullopt, false, now);
  }
}

void BindingCycle::ReportBound(Binding& binding, Time now) {
  if (!std::exchange(binding.reported_bound, true)) callbacks_.bound(binding, now);
}

// A pod for which others were evicted keeps its nomination if the node itself is not the cause.
void BindingCycle::Release(const std::string& key, const std::string& reason, Time now,
                           RetryOn retry) {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  const std::string& node = found->second.node;
  Log(LogLevel::kWarn, "failed to bind Pod, releasing its reservation",
      {{"pod", key}, {"node", node}, {"error", reason}});
  RollBack(key, reason, retry == RetryOn::kSameNode && engine_.NomineeNode(key) == node, now);
}

void BindingCycle::RollBack(const std::string& key, const std::optional<std::string>& reason,
                            bool keeps_nomination, Time now) {
  Binding binding = Remove(key, PartitionRequests::End::kGivenUp);
  engine_.Unreserve(*binding.framework, *binding.pod, binding.node, binding.state);
  engine_.Forget(key);
  callbacks_.rolled_back({binding.pod, binding.node, binding.gang, reason, keeps_nomination}, now);
}

BindingCycle::Binding BindingCycle::Remove(const std::string& key,
                                           PartitionRequests::End instances) {
  const auto found = bindings_.find(key);
  EndPreparing(found->second);
  unanswered_.erase(key);
  SetDeadline(found->second, Time::max());
  Binding binding = std::move(found->second);
  bindings_.erase(found);
  if (binding.awaits_instances) partition_requests_.Drop(binding.node, *binding.pod, instances);
  return binding;
}

}  // namespace nos::controllers
