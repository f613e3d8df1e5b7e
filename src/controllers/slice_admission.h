// Sets the resource of new pods that request a slice by requirements (cluster/gpu_requirements.h).
// A mutating webhook, admission.k8s.io/v1.
//
//   SliceAdmission admission(catalogue, clock, [&] { return ...the caches' snapshots; });
//   net::HttpResponse response{.code = answer.code, .body = admission.Review(request.body).body};
//
// It chooses the cheapest profile with free capacity besides pending pods, or the cheapest of all
// if none has any: a pod's requests cannot be changed later. New pods that the caches do not show
// yet count as placed where they were assumed here, for some seconds at most, and only for later
// pods of their namespace: a review may be of a pod that is never created.
//
// Thread-safe; handles one request at a time. Namespaces take turns, and none has more than a few
// requests waiting (webhook/fair_turns.h). Those without a pod count as one: a client may name any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/snapshot.h"
#include "controllers/admission_review.h"
#include "controllers/webhook/fair_turns.h"
#include "scheduling/configuration.h"

namespace nos::controllers {

struct SliceAdmissionOptions {
  bool shares_need_host_ipc = true;  // see planning::SlicesFor
};

class SliceAdmission {
 public:
  template <typename T>
  using Objects = std::shared_ptr<const std::vector<std::shared_ptr<const T>>>;

  // All nodes and pods. Equal pointers mean that nothing has changed. Null: not known yet.
  struct Cluster {
    Objects<cluster::Node> nodes;
    Objects<cluster::Pod> pods;
  };

  // The first two must outlive this object. `look` may be called from any thread.
  SliceAdmission(const gpu::Catalogue& catalogue, const Clock& clock, std::function<Cluster()> look,
                 SliceAdmissionOptions options = {});

  // OK once the cluster is known.
  Status Ready() const;
  // `body` is untrusted input.
  AdmissionAnswer Review(std::string_view body);

  // The number of requests that are answered or wait.
  size_t asking() const { return turns_.inside(); }

 private:
  // The cluster, and pods that were answered since it was read.
  struct ClusterState {
    cluster::ClusterSnapshot snapshot;
    std::set<std::string> full{};  // see planning::AnswerNeed; valid for this snapshot
  };

  // For turns: the namespace, or "" if it has no pod.
  std::string GroupOf(const std::string& ns);
  void LookAgain();
  ClusterState& StateFor(const std::string& ns);
  Time DeadlineIn(Duration time) { return deadline_ = clock_.Now() + time; }
  // Absent: the time limit expired.
  std::optional<AdmissionVerdict> Choose(const AdmissionQuestion& question);
  bool OutOfTime() const { return clock_.Now() > deadline_; }

  const gpu::Catalogue& catalogue_;
  const Clock& clock_;
  const scheduling::Configuration configuration_;
  const std::function<Cluster()> look_;
  const SliceAdmissionOptions options_;

  FairTurns turns_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> namespaces_;  // with pods; guarded by mutex_
  std::optional<Time> listed_;                     // when; guarded by mutex_

  // Used by who has the turn.
  Cluster seen_;
  ClusterState state_;
  std::map<std::string, ClusterState>
      assumed_;  // by namespace with pods that are not in the caches
  Time looked_{}, deadline_{};
};

}  // namespace nos::controllers
