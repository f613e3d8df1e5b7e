// pkg/controller/job: pods until enough of them have succeeded.
#include <fmt/format.h>

#include <algorithm>

#include "base/back_off.h"
#include "base/text.h"
#include "sim/specs.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

// DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff.
constexpr BackOff kAfterFailure{std::chrono::seconds(10), std::chrono::minutes(10)};

std::optional<int64_t> IndexOf(const cluster::Pod& pod) {
  const auto index = pod.meta.annotations.find(kCompletionIndex);
  return index == pod.meta.annotations.end() ? std::nullopt : ParseInt(index->second);
}

// "0-2,5".
std::string Ranges(const std::set<int64_t>& numbers) {
  std::vector<std::string> parts;
  for (auto i = numbers.begin(); i != numbers.end();) {
    const int64_t first = *i;
    int64_t last = first;
    while (++i != numbers.end() && *i == last + 1) last = *i;
    parts.push_back(first == last ? fmt::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return Join(parts, ",");
}

class Batch {
 public:
  explicit Batch(const WorkloadView& view)
      : view_(view),
        object_(view.self.object),
        conditions_(view.self.object, view.now),
        indexed_(FindString(object_, "spec", "completionMode") == "Indexed"),
        suspended_(FlagAt(object_, "spec", "suspend")) {
    if (const Json* needed = Find(object_, "spec", "completions")) {
      if (needed->is_int64()) needed_ = needed->get_int64();
    }
    for (const PodPtr& pod : view.pods) {
      if (IsActive(*pod)) active_.push_back(pod);
      terminating_ += pod->meta.deleted && !pod->Finished() ? 1 : 0;
    }
    for (const auto& [uid, end] : view.tally.ended) {
      if (end.succeeded && end.index) done_.insert(*end.index);
      if (end.succeeded) ++succeeded_;
      if (!end.succeeded) ++failed_;
      if (!end.succeeded) last_failure_ = std::max(last_failure_, end.at);
    }
    if (indexed_) succeeded_ = std::ssize(done_);
  }

  WorkloadPlan Decide() {
    if (const auto ended = EndedAt()) {
      RemoveActive();
      WriteCounts();
      RemoveLater(*ended);
      return std::move(plan_);
    }
    CheckEnd();
    if (!end_reason_.empty() || suspended_) {
      RemoveActive();
    } else if (!complete_) {
      Adjust();
    }
    WriteStatus();
    return std::move(plan_);
  }

 private:
  std::optional<Time> EndedAt() const {
    for (const std::string_view type : {"Complete", "Failed"}) {
      const Json* condition = conditions_.Get(type);
      if (condition == nullptr || FindString(*condition, "status") != "True") continue;
      return ParseTime(FindString(*condition, "lastTransitionTime")).value_or(view_.now);
    }
    return std::nullopt;
  }

  void RemoveActive() {
    for (const PodPtr& pod : active_) plan_.Remove(kube::kPods, pod->meta);
    terminating_ += std::ssize(active_);
    active_.clear();
  }

  // ttlSecondsAfterFinished.
  void RemoveLater(Time ended) {
    const int64_t keep = NumberAt(object_, -1, "spec", "ttlSecondsAfterFinished");
    if (keep < 0) return;
    const Time due = ended + std::chrono::seconds(keep);
    if (due > view_.now) return plan_.Again(due);
    plan_.Remove(kJobs, view_.self.meta);
  }

  // Complete, or failed with a reason, or neither.
  void CheckEnd() {
    // Without a number of completions the first success decides, once no pod runs.
    complete_ = needed_ ? succeeded_ >= *needed_ : succeeded_ > 0 && active_.empty();
    if (complete_) return;
    if (failed_ > NumberAt(object_, 6, "spec", "backoffLimit")) {
      end_reason_ = "BackoffLimitExceeded";
      end_message_ = "Job has reached the specified backoff limit";
    }
    const int64_t limit = NumberAt(object_, -1, "spec", "activeDeadlineSeconds");
    const auto started = ParseTime(FindString(object_, "status", "startTime"));
    if (limit < 0 || !started.ok() || suspended_) return;
    const Time due = *started + std::chrono::seconds(limit);
    if (due > view_.now) return plan_.Again(due);
    end_reason_ = "DeadlineExceeded";
    end_message_ = "Job was active longer than specified deadline";
  }

  int64_t MayRun() const {
    const int64_t parallel = NumberAt(object_, 1, "spec", "parallelism");
    if (needed_) return std::min(parallel, *needed_ - succeeded_);
    return succeeded_ > 0 ? std::min(parallel, std::ssize(active_)) : parallel;
  }

  void Adjust() {
    const int64_t excess = std::ssize(active_) - MayRun();
    for (int64_t i = 0; i < excess; ++i) {
      plan_.Remove(kube::kPods, active_.back()->meta);
      active_.pop_back();
      ++terminating_;
    }
    if (excess >= 0) return;
    if (failed_ > 0) {
      const Time due = last_failure_ + kAfterFailure.After(failed_);
      if (due > view_.now) return plan_.Again(due);
    }
    std::set<int64_t> taken = done_;
    for (const PodPtr& pod : active_) {
      if (const auto index = IndexOf(*pod)) taken.insert(*index);
    }
    int64_t next = 0;
    for (int64_t i = excess; i < 0; ++i) {
      while (taken.contains(next)) ++next;
      Create(next++);
    }
  }

  void Create(int64_t index) {
    Json pod = PodOf(view_.self, kJobs);
    JsonObject& metadata = MakeObject(pod, "metadata");
    metadata["generateName"] =
        indexed_ ? fmt::format("{}-{}-", view_.self.meta.name, index) : view_.self.meta.name + "-";
    if (indexed_) {
      const std::string text = fmt::to_string(index);
      MakeObject(pod, "metadata", "labels")[kCompletionIndex] = text;
      MakeObject(pod, "metadata", "annotations")[kCompletionIndex] = text;
    }
    JsonObject& annotations = MakeObject(pod, "metadata", "annotations");
    if (!annotations.contains(kRunSeconds)) {
      annotations[kRunSeconds] = fmt::to_string(kJobSeconds);
    }
    plan_.create.push_back({&kube::kPods, std::move(pod)});
    ++created_;
  }

  void WriteStatus() {
    if (complete_) {
      const std::string_view reason = "CompletionsReached";
      const std::string_view message = "Reached expected number of succeeded pods";
      conditions_.Put("SuccessCriteriaMet", true, reason, message);
      conditions_.Put("Complete", true, reason, message);
    }
    if (!end_reason_.empty()) {
      conditions_.Put("FailureTarget", true, end_reason_, end_message_);
      conditions_.Put("Failed", true, end_reason_, end_message_);
    }
    if (suspended_) {
      conditions_.Put("Suspended", true, "JobSuspended", "Job suspended");
    } else if (conditions_.Get("Suspended") != nullptr) {
      conditions_.Put("Suspended", false, "JobResumed", "Job resumed");
    }
    WriteCounts();
  }

  void WriteCounts() {
    JsonObject status;
    const std::string_view started = FindString(object_, "status", "startTime");
    if (!suspended_) {
      status["startTime"] = started.empty() ? FormatTime(view_.now) : std::string(started);
    }
    if (complete_) status["completionTime"] = FormatTime(view_.now);
    if (const Json* time = Find(object_, "status", "completionTime")) {
      status["completionTime"] = *time;
    }
    PutCount(status, "active", std::ssize(active_) + created_);
    PutCount(status, "succeeded", succeeded_);
    PutCount(status, "failed", failed_);
    status["terminating"] = terminating_;
    status["ready"] = std::ranges::count_if(active_, [](const auto& pod) { return IsReady(*pod); });
    status["uncountedTerminatedPods"] = JsonObject();
    if (indexed_ && !done_.empty()) status["completedIndexes"] = Ranges(done_);
    JsonArray conditions = conditions_.Take();
    if (!conditions.empty()) status["conditions"] = std::move(conditions);
    plan_.status = std::move(status);
  }

  const WorkloadView& view_;
  const Json& object_;
  Conditions conditions_;
  const bool indexed_, suspended_;
  WorkloadPlan plan_;
  std::optional<int64_t> needed_;  // completions
  std::vector<PodPtr> active_;
  std::set<int64_t> done_;  // indexes
  int64_t succeeded_ = 0, failed_ = 0, terminating_ = 0, created_ = 0;
  Time last_failure_{};
  bool complete_ = false;
  std::string_view end_reason_, end_message_;
};

}  // namespace

WorkloadPlan DecideJob(const WorkloadView& view) { return Batch(view).Decide(); }

}  // namespace nos::sim
