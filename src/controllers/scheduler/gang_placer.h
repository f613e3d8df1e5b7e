// Places gangs (controllers/gangs.h): decides all pending members at once, and keeps the decisions
// only if enough of them find a node. A pending gang holds nothing, so two gangs cannot block each
// other.
//
//   GangPlacer placer(engine, queue, gangs, bindings, pods, profiles, nominations, preemptor,
//                     status, metrics);
//   if (const auto placed = placer.Place(pod, client, now)) {
//     for (const auto& [member, diagnosis] : placed->refusals) ...;   // each as a single pod
//     for (const std::string& key : placed->chosen) ...;              // start its binding
//   }
//
// Some members may have to follow others or be near them, so that the first placed member limits
// the nodes of the others. Then members are tried repeatedly, and in several topology domains. The
// attempts are real decisions with the usual rules, including quotas and nominations. They are
// released before anything is published.
//
// Owned by one thread.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "controllers/gangs.h"
#include "controllers/scheduler/pod_placer.h"
#include "controllers/scheduler/preemption/preemptor.h"
#include "controllers/scheduler/status_reporter.h"
#include "scheduling/gang_starts.h"
#include "scheduling/queue.h"

namespace nos::controllers {

class GangPlacer {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // Members of a gang placed one after the other.
  struct Placement {
    std::vector<std::string> chosen = {};  // keys of members that found a node, in this order
    scheduling::GangRefusals refusals = {};
    bool gave_up = false;  // a Reserve plugin failed for one: it is tried again later
    bool begun = false;    // a member was placed in the domain in which the gang was to start
  };

  // All must outlive this object.
  GangPlacer(scheduling::Engine& engine, scheduling::SchedulingQueue& queue, const Gangs& gangs,
             BindingCycle& bindings, PodPlacer& pods, const Profiles& profiles,
             Nominations& nominations, Preemptor& preemptor, StatusReporter& status,
             SchedulerMetrics& metrics);

  // Places the pod with its gang. `pod` was taken from the queue. Absent: it belongs to no gang. An
  // empty placement: too few members find a node, and the gang was refused.
  std::optional<Placement> Place(const Pod& pod, kube::Client& client, Time now);

 private:
  // Places a member. Returns false with the diagnosis.
  using PlaceOne = FunctionRef<bool(const Pod& member, scheduling::Diagnosis& diagnosis)>;
  struct DomainTries;

  static bool IsEnough(const PendingGang& gang, const Placement& tried) {
    return gang.placed + tried.chosen.size() >= gang.least;
  }
  Placement PlaceGang(const PendingGang& gang, kube::Client& client, Time now);
  void TryEach(const PendingGang& gang, const std::vector<Pod>& members, PlaceOne place,
               Placement& tried);
  void TryOne(const PendingGang& gang, const Pod& member, PlaceOne place, Placement& tried);
  void Abandon(const Placement& tried);
  // Tries refused members again that may follow others, then, if members must be near each other,
  // other topology domains, then other alternatives of claims, then other orders. If no attempt
  // places enough members, `tried` is the best attempt. Its assumptions are released, and the
  // refusals of the other attempts are appended to its own.
  void TryFurther(const PendingGang& gang, Placement& tried, Time now);
  void TryRefused(const PendingGang& gang, PlaceOne place, Placement& tried);
  // Like TryFurther. Tries the gang again with later alternatives of claims (firstAvailable): the
  // first members may have taken a large device of which all could have had a part.
  void TryAlternatives(const PendingGang& gang, PlaceOne place, Placement& best);
  // Like TryFurther. Tries the members in other orders: the first ones may have taken devices which
  // are the only ones that serve others.
  void TryOrders(const PendingGang& gang, PlaceOne place, Placement& best);
  // Releases the best attempt so far and tries these members in this order.
  Placement TryInstead(const PendingGang& gang, const std::vector<Pod>& members, PlaceOne place,
                       const Placement& best);
  // Keeps `tried` as `best`, and returns true, if the gang needs no further attempt. Otherwise
  // releases it, keeps the better one, and moves the refusals of the other one to `others`.
  bool KeepBetter(const PendingGang& gang, Placement tried, Placement& best,
                  scheduling::GangRefusals& others);
  void TryDomains(const PendingGang& gang, const scheduling::GangTies& ties, Placement& best);
  Placement TryIn(const PendingGang& gang, std::span<const size_t> domain, DomainTries& tries);
  void RefuseGang(const PendingGang& gang, size_t found, const scheduling::GangRefusals& refusals,
                  kube::Client& client, Time now);
  void Sleep(const std::vector<Pod>& pods, const std::vector<const scheduling::Plugin*>& by,
             Time now);
  void GiveBackDevices(const std::vector<Pod>& pods, kube::Client& client, Time now);
  void ReportRefusal(const std::vector<Pod>& pods, const std::string& why, Time now);

  scheduling::Engine& engine_;
  scheduling::SchedulingQueue& queue_;
  const Gangs& gangs_;
  BindingCycle& bindings_;
  PodPlacer& pods_;
  const Profiles& profiles_;
  Nominations& nominations_;
  Preemptor& preemptor_;
  StatusReporter& status_;
  SchedulerMetrics& metrics_;
  const GangScheduling gang_scheduling_;
};

}  // namespace nos::controllers
