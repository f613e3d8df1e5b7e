// Takes a pod from the choice of a node to a binding that the watch shows.
//
//   BindingCycle bindings(engine, requests, workers, wake, options, callbacks);
//   bindings.Assume(pod, framework, node);      // reserves resources in the engine's snapshot
//   bindings.Start(pod->Key(), client, now);    // PreBind, then Bind
//   bindings.CollectResults(now);               // on each reconcile:
//   bindings.ExpireTimeouts(client, now);
//   bindings.Step(client, now);
//
// A pod moves kPreparing -> kBinding -> kBound, and ends when OnPodUpdate shows the outcome.
// kPreparing waits for instances that the node's agent has still to create and for PreBind plugins
// (volumes). If a Bind call is not answered, the pod is read back before anything else happens to
// it (kUnconfirmed). Every failure releases what was reserved and reports the pod once as a
// Rollback.
//
// A member of a gang stops twice in kPreparing, until the caller continues it: before the first
// write to a volume (Resume), and before the Bind call (Bind).
//
// Owned by one thread. API calls run on `workers` if there are any. Their results are applied in
// CollectResults.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/back_off.h"
#include "base/clock.h"
#include "controllers/scheduler/partition_requests.h"
#include "kube/workers.h"
#include "scheduling/engine.h"

namespace nos::controllers {

class BindingCycle {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  enum class Stage { kPreparing, kBinding, kBound, kUnconfirmed };

  // A pod with a node that the watch does not show as bound yet.
  struct Binding {
    Pod pod;  // with the instances to create for it, if any
    const scheduling::Framework* framework = nullptr;
    std::string node;
    scheduling::CycleState state = {};
    Stage stage = Stage::kPreparing;
    // The node when PreBind last ran, and when the filters last accepted the pod.
    std::shared_ptr<const cluster::NodeInfo> seen = {}, fits = {};
    std::string bind_error = {};    // in kUnconfirmed
    int reads = 0;                  // number of reads in kUnconfirmed
    uint64_t attempt = 0;           // unique among all bindings of all pods
    size_t writes = 0;              // requests of PreBind plugins without an answer
    bool awaits_instances = false;  // the node's agent has to create them
    bool reported_waiting = false;  // Callbacks::waits_for_instances was called
    bool held_back = false;         // until Resume
    bool ready = false;             // PreBind is complete
    std::string gang = {};          // bound only together with `gang_minimum` members of it
    size_t gang_minimum = 0;
    bool reported_bound = false;  // Callbacks::bound was called
    Time deadline = Time::max();  // of the current stage; set by SetDeadline
  };

  // A released reservation.
  struct Rollback {
    Pod pod;
    std::string node, gang;
    // Why the pod has to be scheduled again. Absent: it is gone or bound elsewhere.
    std::optional<std::string> reason;
    // True if the pod should be tried on the same node, for which it was nominated.
    bool keeps_nomination = false;
  };

  // Must not call the BindingCycle's non-const methods.
  struct Callbacks {
    std::function<void(const Binding&, Time)> bound;
    std::function<void(const Rollback&, Time)> rolled_back;
    // Once per pod whose instances take longer than usual. `message` names what it waits for.
    std::function<void(const Binding&, const std::string& message, Time)> waits_for_instances;
    // A member of the gang can be continued with Resume or Bind.
    std::function<void(const std::string& gang)> gang_member_waits;
  };

  struct Options {
    BackOff reads;  // in kUnconfirmed
    // Limit of pods in kPreparing. Beyond it, a pod that would have to wait is released.
    size_t max_preparing;
    // From the request for instances to their creation, and until waiting is reported.
    Duration instances_deadline, report_waiting_after;
  };

  // Engine, requests and workers (null: calls are made by the owner) must outlive this object.
  // `wake` is called from any thread when there are results to collect.
  BindingCycle(scheduling::Engine& engine, PartitionRequests& requests, kube::Workers* workers,
               std::function<void()> wake, Options options, Callbacks callbacks);

  // Assumes the pod on the node and reserves its resources. Error: a Reserve plugin refused, and
  // the caller must call Release or Abandon.
  scheduling::Verdict Assume(const Pod& pod, const scheduling::Framework& framework,
                             const cluster::NodeInfo& node);
  // Takes over the assumption and the instances that a predecessor requested on the pod's nominated
  // node. False: it requested none. The pod is released at once if it does not fit any more.
  bool Adopt(const Pod& pod, const scheduling::Framework& framework, Time now);
  // Makes an assumed pod a member of a gang.
  void JoinGang(const std::string& key, const std::string& gang, size_t minimum);
  void LeaveGang(const std::string& key);
  // Undoes Assume without a Rollback, as if the pod had not been placed. REQUIRES: not started.
  void Abandon(const std::string& key);
  // Begins PreBind. REQUIRES: the pod is assumed.
  void Start(const std::string& key, kube::Client& client, Time now);
  // Continues a member of a gang. Resume: no effect unless it is held back.
  void Resume(const std::string& key, kube::Client& client, Time now);
  void Bind(const std::string& key, kube::Client& client);
  // Releases the pod's reservation for this reason. kSameNode: a nomination for its node is kept.
  // No effect without a binding.
  enum class RetryOn { kAnyNode, kSameNode };
  void Release(const std::string& key, const std::string& reason, Time now,
               RetryOn retry = RetryOn::kAnyNode);

  // Applies the results of API calls.
  void CollectResults(Time now);
  // Runs PreBind again, or reads pods back, where a deadline has passed.
  void ExpireTimeouts(kube::Client& client, Time now);
  // Runs PreBind for pods whose node, volumes or requests have changed.
  void Step(kube::Client& client, Time now);
  // Sends requests for instances: one patch for each node. `find`: see PartitionRequests::Due.
  void RequestInstances(const PartitionRequests::FindNode& find, kube::Client& client);

  // Events. OnNodeChange: the node was replaced or its pods changed. OnContextChange: volumes,
  // budgets or other objects changed. OnPodUpdate: the pod is bound, ended or deleted.
  void OnNodeChange(std::string_view node);
  void OnContextChange() { due_.insert(due_on_context_.begin(), due_on_context_.end()); }
  void OnPodUpdate(const Pod& pod, Time now);

  // Null: the pod has no node.
  const Binding* Find(const std::string& key) const;
  size_t size() const { return bindings_.size(); }
  size_t preparing() const { return preparing_.size(); }
  // A Bind call is in flight, or was not answered.
  bool IsBinding() const { return !unanswered_.empty(); }
  // Results were collected since the last Step.
  bool HasNews() const { return has_news_; }
  std::optional<Time> NextDeadline() const;

 private:
  struct Answer;
  struct Results;

  void SetDeadline(Binding& binding, Time deadline);
  void SetStage(Binding& binding, Stage stage);
  void EndPreparing(const Binding& binding);
  void PreBind(Binding& binding, kube::Client& client, Time now);
  scheduling::Progress RunPreBindPlugins(Binding& binding, Time now) const;
  scheduling::Progress CheckInstances(Binding& binding, Time now);
  void ReportWaiting(Binding& binding, scheduling::Progress& progress, Time now);
  std::string WhyNoLongerFits(Binding& binding) const;
  void SendWrites(Binding& binding, std::vector<kube::ApiRequest> writes, kube::Client& client);
  void SendBind(Binding& binding, kube::Client& client);
  void ReadBack(const Binding& binding, kube::Client& client);
  void ApplyAnswer(const Answer& answer, Time now);
  void ApplyBindAnswer(Binding& binding, const Status& status, Time now);
  void ApplyReadAnswer(Binding& binding, const Answer& answer, Time now);
  void ReportBound(Binding& binding, Time now);
  void RollBack(const std::string& key, const std::optional<std::string>& reason,
                bool keeps_nomination, Time now);
  Binding Remove(const std::string& key, PartitionRequests::End instances);

  scheduling::Engine& engine_;
  PartitionRequests& partition_requests_;
  kube::Workers* workers_;
  const Options options_;
  const Callbacks callbacks_;
  std::map<std::string, Binding> bindings_;  // by pod key
  // Keys of pods in kPreparing: all; those whose PreBind is to run now; those whose PreBind is to
  // run when the cluster context changes; all by node.
  std::set<std::string> preparing_, due_, due_on_context_;
  std::map<std::string, std::set<std::string>, std::less<>> preparing_on_;
  std::set<std::pair<Time, std::string>> deadlines_;
  std::set<std::string> unanswered_;  // keys in kBinding or kUnconfirmed
  uint64_t attempts_ = 0;             // number of bindings so far
  bool has_news_ = false;
  std::shared_ptr<Results> results_;  // shared with API calls, which may end after this object
};

}  // namespace nos::controllers
