#include "controllers/collector/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/millis.h"
#include "base/text.h"
#include "controllers/collector/records.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 1000;  // bytes of text from other systems

std::string_view LabelOf(const cluster::StringMap& labels, std::string_view key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string_view() : found->second;
}

// A label that names the owner above the controller.
struct Above {
  std::string_view label, kind;
};
constexpr std::array<Above, 2> kAbove = {{{"jobset.sigs.k8s.io/jobset-name", "JobSet"},
                                          {"leaderworkerset.sigs.k8s.io/name", "LeaderWorkerSet"}}};

const cluster::Condition* TrueOf(const std::vector<cluster::Condition>& conditions,
                                 std::string_view type) {
  const cluster::Condition* found = cluster::FindCondition(conditions, type);
  return found != nullptr && found->status == "True" ? found : nullptr;
}

std::string TextOf(const cluster::Condition& condition) {
  return Shortened(condition.message.empty() ? condition.reason : condition.message, kMaxText);
}

void AddRequests(const cluster::PodTemplate& pods, std::map<std::string, double>& sum) {
  for (const auto& [resource, quantity] : cluster::PodRequests(pods.pod)) {
    const double amount = static_cast<double>(quantity.Value()) * std::max(pods.count, 0);
    if (IsOfGpus(resource) && quantity.Value() > 0) sum[resource] += amount;
  }
}

JsonObject RequestsJson(const std::map<std::string, double>& requests) {
  JsonObject json;
  for (const auto& [resource, amount] : requests) json[resource] = amount;
  return json;
}

}  // namespace

std::optional<JobName> JobAbove(const cluster::StringMap& labels) {
  const std::string_view ray_kind = LabelOf(labels, "ray.io/originated-from-crd");
  const std::string_view ray_name = LabelOf(labels, "ray.io/originated-from-cr-name");
  if (!ray_kind.empty() && !ray_name.empty()) {
    return JobName{std::string(ray_kind), std::string(ray_name)};
  }
  for (const Above& above : kAbove) {
    if (const auto name = LabelOf(labels, above.label); !name.empty()) {
      return JobName{std::string(above.kind), std::string(name)};
    }
  }
  return std::nullopt;
}

std::string_view QueueOf(const cluster::StringMap& labels) {
  return LabelOf(labels, "kueue.x-k8s.io/queue-name");
}

JobPart PartOf(const cluster::Job& job) {
  JobPart part;
  part.parallelism = std::max(job.pods.count, 0);
  part.wanted = job.completions.value_or(job.pods.count);
  part.active = job.active;
  part.succeeded = job.succeeded;
  part.failed = job.failed;
  part.suspended = job.suspended;
  part.created = job.meta.created;
  part.started = job.started.value_or(Time());
  part.queue = QueueOf(job.meta.labels);
  if (const auto* failed = TrueOf(job.conditions, "Failed")) {
    part.broke = true;
    part.why = TextOf(*failed);
    part.finished = failed->last_transition;
  } else if (const auto* complete = TrueOf(job.conditions, "Complete")) {
    part.finished = job.completed.value_or(complete->last_transition);
  }
  AddRequests(job.pods, part.requests);
  return part;
}

// Source: conditions in sigs.k8s.io/kueue apis/kueue/v1beta1 workload_types.go. Kueue sets Evicted
// to False when the Workload is admitted again.
Admission PartOf(const cluster::KueueWorkload& workload) {
  Admission part;
  part.queue = workload.queue;
  part.cluster_queue = workload.cluster_queue;
  part.created = workload.meta.created;
  const cluster::Condition* says = nullptr;
  const auto is = [&](const char* type, const char* state) {
    const cluster::Condition* found = TrueOf(workload.conditions, type);
    if (found == nullptr) return false;
    says = found;
    part.state = state;
    return true;
  };
  const bool any = is("Finished", "finished") || is("Evicted", "evicted") ||
                   is("Admitted", "admitted") || is("QuotaReserved", "reserved");
  if (!any) {
    part.state = "pending";
    says = cluster::FindCondition(workload.conditions, "QuotaReserved");
  }
  if (says != nullptr) {
    part.reason = Shortened(says->reason, kMaxText);
    part.message = Shortened(says->message, kMaxText);
    part.at = says->last_transition;
  }
  for (const cluster::PodTemplate& pods : workload.pods) AddRequests(pods, part.requests);
  return part;
}

QueuePart PartOf(const cluster::KueueQueue& queue) {
  QueuePart part{queue.cluster_queue, queue.pending, queue.reserving, queue.admitted, true, ""};
  const cluster::Condition* active = cluster::FindCondition(queue.conditions, "Active");
  part.active = active == nullptr || active->status != "False";
  if (!part.active) part.why = TextOf(*active);
  return part;
}

// The owner of a TrainJob's Workload is mapped to its JobSet: Kubeflow's trainer creates a JobSet
// of the same name, which owns the pods.
std::optional<JobName> JobOf(const cluster::KueueWorkload& workload) {
  const auto owner =
      std::ranges::find(workload.meta.owners, true, &cluster::OwnerReference::controller);
  if (owner == workload.meta.owners.end() || owner->kind == "Pod") return std::nullopt;
  return JobName{owner->kind == "TrainJob" ? "JobSet" : owner->kind, owner->name};
}

void Add(const JobPart& part, JobPart& sum) {
  const bool first = sum.created == Time();
  sum.wanted += part.wanted;
  sum.parallelism += part.parallelism;
  sum.active += part.active;
  sum.succeeded += part.succeeded;
  sum.failed += part.failed;
  sum.suspended = part.suspended && (first || sum.suspended);
  sum.broke = sum.broke || part.broke;
  const bool goes_on = part.finished == Time() || (!first && sum.finished == Time());
  sum.finished = goes_on ? Time() : std::max(sum.finished, part.finished);
  sum.created = first ? part.created : std::min(sum.created, part.created);
  if (part.started != Time()) {
    sum.started = sum.started == Time() ? part.started : std::min(sum.started, part.started);
  }
  if (sum.queue.empty()) sum.queue = part.queue;
  if (sum.why.empty()) sum.why = part.why;
  for (const auto& [resource, amount] : part.requests) sum.requests[resource] += amount;
}

void AddFields(const JobPart& part, JsonObject& record) {
  record["wanted"] = part.wanted;
  record["parallelism"] = part.parallelism;
  record["active"] = part.active;
  record["failed"] = part.failed;
  record["suspended"] = part.suspended;
  record["requests"] = RequestsJson(part.requests);
}

void AddFields(const Admission& admission, JsonObject& record) {
  record["admission"] = {{"state", admission.state},
                         {"cluster_queue", admission.cluster_queue},
                         {"reason", admission.reason},
                         {"message", admission.message},
                         {"at", admission.at == Time() ? 0 : ToMillis(admission.at)}};
  if (!record.contains("requests")) record["requests"] = RequestsJson(admission.requests);
}

void AddFields(const QueuePart& queue, JsonObject& record) {
  record["workloads"] = {
      {"pending", queue.pending}, {"reserving", queue.reserving}, {"admitted", queue.admitted}};
  record["active"] = queue.active;
  record["why"] = queue.why;
  if (!queue.cluster_queue.empty()) record["cluster_queue"] = queue.cluster_queue;
}

}  // namespace nos::controllers
