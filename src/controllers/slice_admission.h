// Gives pods that ask for a slice by need (cluster/need.h) the resource that serves it, when they
// are made: a mutating webhook, admission.k8s.io/v1.
//
//   SliceAdmission admission(catalogue, clock, [&] { return ...the caches' snapshots; });
//   net::HttpResponse response{.code = answer.code, .body = admission.Review(request.body).body};
//
// The cheapest kind that has room now beside the pods that wait, or the cheapest of all when none
// has: what a pod asks for cannot be changed later. Of pods that have come since the cluster was
// looked at last, those that were chosen for here count as placed, for some seconds at most.
//
// Thread-safe; one question at a time.
#pragma once

#include <atomic>
#include <functional>
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
#include "scheduling/configuration.h"

namespace nos::controllers {

class SliceAdmission {
 public:
  template <typename T>
  using Objects = std::shared_ptr<const std::vector<std::shared_ptr<const T>>>;

  // All nodes and pods there are; equal pointers while nothing has changed. Null: not known yet.
  struct Cluster {
    Objects<cluster::Node> nodes;
    Objects<cluster::Pod> pods;
  };

  // The first two must outlive it; `look` is called from any thread, when somebody asks.
  SliceAdmission(const gpu::Catalogue& catalogue, const Clock& clock,
                 std::function<Cluster()> look);

  // OK once the cluster is known.
  Status Ready() const;
  // `body` is whatever a client has sent.
  AdmissionAnswer Review(std::string_view body);

 private:
  void LookAgain();
  Time DeadlineIn(Duration time) { return deadline_ = clock_.Now() + time; }
  // None: there was no time for it.
  std::optional<AdmissionVerdict> Choose(const AdmissionQuestion& question);
  bool OutOfTime() const { return clock_.Now() > deadline_; }

  const gpu::Catalogue& catalogue_;
  const Clock& clock_;
  const scheduling::Configuration configuration_;
  const std::function<Cluster()> look_;

  std::atomic<int> asking_{0};

  std::mutex mutex_;  // guards the rest
  Cluster seen_;
  cluster::ClusterSnapshot snapshot_;
  std::set<std::string> full_;  // planning::AnswerNeed, of this snapshot
  bool assumes_ = false;        // that somebody has come who is not in the caches
  Time looked_{}, deadline_{};
};

}  // namespace nos::controllers
