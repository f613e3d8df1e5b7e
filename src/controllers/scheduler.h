// Binds pods to nodes, as kube-scheduler does. It takes pending pods by priority, then by age,
// filters and scores nodes with the framework of the pod's profile, and binds the pod. An
// unschedulable pod gets the condition PodScheduled=False, Unschedulable with the reason. It is
// tried again only after a cluster event that could make it schedulable.
//
// If the framework includes the GpuCutting plugin, a pod may be placed on a node whose MIG
// instances do not exist yet. Exact instances are then reserved for the pod, the node's agent is
// asked to create them (cuts.h), and the pod is bound when the kubelet offers them.
//
// From the decision to the binding a pod is assumed on its node and its resources are reserved.
// Every failure on the way releases them. A bound pod stays reserved until the watch shows it. If a
// Bind call is not answered, the pod is read back from the API server.
//
//   Scheduler scheduler(config, {{"nos-scheduler", &framework}}, catalogue, threads);
//   reconcile::Runner runner(scheduler, transport, {.watch_around = true});
//   while (runner.Step(clock)) {
//   }                     // then wait for runner.NextDue() or for threads.wake
//   scheduler.Retire();   // leadership is lost; a successor may start once IsQuiet()
//
// Owned by one thread, which makes all decisions. API calls run on Workers if there are any.
// Without Workers the owner makes them itself, one after the other, in a reproducible order.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "controllers/gangs.h"
#include "controllers/scheduler/cuts.h"
#include "controllers/scheduler/metrics.h"
#include "gpu/catalogue.h"
#include "kube/event_recorder.h"
#include "kube/workers.h"
#include "reconcile/reconciler.h"
#include "scheduling/engine.h"
#include "scheduling/gang_starts.h"
#include "scheduling/plugins/capacity_scheduling/plugin.h"
#include "scheduling/preemption.h"
#include "scheduling/queue.h"
#include "scheduling/reclaim.h"

namespace nos::controllers {

struct SchedulerProfile {
  std::string scheduler_name;
  const scheduling::Framework* framework;
  // Absent: pods of this profile preempt no other pod.
  std::optional<scheduling::PreemptionOptions> preemption = scheduling::PreemptionOptions();
  // Like `framework`, but with GPUs partitioned for the pod: finds out what would help a refused
  // pod. Null: `framework` partitions GPUs itself.
  const scheduling::Framework* cutting = nullptr;
  // If true, pods are evicted to reclaim quota guarantees. Only for a framework with the quota
  // plugin.
  bool reclaims = true;
};

struct SchedulerConfig {
  scheduling::QueueOptions queue;
  // Back-off before a pod is read back whose binding was not answered.
  kube::BackOff asks{std::chrono::seconds(1), std::chrono::seconds(10)};
  // How long a node's agent may take to report that the instances of evicted pods are free.
  Duration agent_patience = std::chrono::seconds(30);
  size_t decisions_per_call = 500;  // then new events are handled
  size_t most_bindings = 256;       // in flight
  // Limit of pods that wait for PreBind. Beyond it, a pod that would have to wait is requeued.
  size_t most_preparing = 10'000;
  Cuts::Options cuts{};
  Duration tell_of_cuts_after = std::chrono::seconds(10);  // most GPUs are partitioned by then
  // Conditions, and as many Events, written per call. Fewer while pods are being bound: bindings
  // take precedence at the API server, too.
  size_t tellings_per_call = 16;
  size_t tellings_beside_bindings = 2;
  size_t remedies_per_call = 1;  // kinds of pods for which a remedy is searched
  // How often remedies are searched while pods are to be decided or are being bound.
  Duration remedies_beside_bindings_every = std::chrono::seconds(1);
  // Limit of pending conditions. Beyond it, the condition is written at the pod's next refusal.
  size_t most_tellings = 100'000;
};

// Makes the scheduler leave its API calls to other threads.
struct SchedulerThreads {
  kube::Workers* binders = nullptr;
  kube::Workers* teller = nullptr;  // with one thread
  std::function<void()> wake{};     // called from any thread when Reconcile has something to do
};

class Scheduler final : public reconcile::Reconciler {
 public:
  // Frameworks, catalogue and metrics (null: none are kept) must outlive this object. The workers
  // must outlive the calls posted to them.
  Scheduler(SchedulerConfig config, std::vector<SchedulerProfile> profiles,
            const gpu::Catalogue& catalogue, SchedulerThreads threads = {},
            Metrics* metrics = nullptr);
  ~Scheduler() override;

  // Key: kClusterKey. Needs View::changes.
  reconcile::ReconcileResult Reconcile(const std::string& key, const reconcile::Listers& view,
                                       kube::Client& client, const Clock& clock) override;

  // Stops all further decisions, because another replica takes over. Pods with a node whose binding
  // was not started are left to that replica.
  void Retire() { retired_ = true; }
  // True if a successor sees everything in the API server: no Bind call, eviction or patch of a
  // plan for an agent is in flight. Bound pods count as in flight until the watch shows them.
  bool IsQuiet() const {
    return bindings_.size() == preparing_.size() && going_.empty() &&
           cuts_.AreShown(engine_.snapshot());
  }

  const scheduling::SchedulingQueue& queue() const { return queue_; }
  // Pods that have a node, but are not yet seen as bound there.
  size_t bindings() const { return bindings_.size(); }
  // The cluster as the scheduler assumes it, including reservations for pods not yet bound.
  const cluster::ClusterSnapshot& snapshot() const { return engine_.snapshot(); }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;
  using Framework = scheduling::Framework;

  // Kinds of pods for which no victims were found. The set is emptied when `count` changes, which
  // grows with each cluster event that could help.
  class HopelessKinds {
   public:
    bool Contains(const std::string& kind, uint64_t count) {
      if (std::exchange(count_, count) != count) kinds_.clear();
      return kinds_.contains(kind);
    }
    void Add(std::string kind) { kinds_.insert(std::move(kind)); }

   private:
    std::set<std::string> kinds_;
    uint64_t count_ = 0;
  };
  // A pod on its way from the decision until the watch shows it as bound.
  struct Binding {
    Pod pod;
    const Framework* framework = nullptr;
    std::string node;
    scheduling::CycleState state;
    // kBound: the watch has yet to show it. kDoubtful: the outcome of the Bind call is unknown.
    enum class Stage { kPreparing, kSent, kBound, kDoubtful } stage = Stage::kPreparing;
    // The node when this binding was last looked at, and when the pod was last found to fit.
    std::shared_ptr<const cluster::NodeInfo> seen = {}, fits = {};
    std::string why = {};       // in kDoubtful: the answer to the Bind call
    int asked = 0;              // number of reads since
    uint64_t attempt = 0;       // unique among all bindings of all pods
    size_t writes = 0;          // calls of pre-bind plugins that are not answered yet
    bool cuts = false;          // waits for its instances to be created
    bool told_of_cuts = false;  // the pod's condition says so
    // No volume is written before enough members of the gang have their GPUs.
    bool held_back = false;
    bool ready = false;     // PreBind is complete
    std::string gang = {};  // bound only together with `least` members of it
    size_t least = 0;
    bool arrived = false;      // it is bound, and the Event was queued
    Time until = Time::max();  // set by SetUntil
  };
  struct Answer {
    std::string key;
    uint64_t attempt = 0;  // the binding it answers
    enum class Of { kPreBind, kBind, kAsk } of = Of::kPreBind;
    Status status;
    std::string node;  // kAsk: where the pod is bound, if it is
  };
  // A condition or Event to publish for a pod.
  struct EventQueue {
    Pod pod;
    // For the PodScheduled condition and the Event, or for the Event only.
    std::string reason, message;
    std::string node;      // not empty: an Event only; the node where the pod was bound or evicted
    bool explain = false;  // a remedy is to be added to the message
    int conflicts = 0;     // conflicts when the condition was written
  };
  // A gang that is about to be placed.
  struct Gang {
    std::string name;
    size_t least = 0, placed = 0;  // members that must have a node, and members that have one
    std::vector<Pod> waiting;
  };
  using Refusals = scheduling::GangRefusals;
  // Result of placing members of a gang one after the other.
  struct GangTry {
    std::vector<std::string> chosen = {};  // keys of members that found a node, in this order
    Refusals refusals = {};
    bool gave_up = false;  // a Reserve plugin failed for one: it is tried again later
    bool begun = false;    // a member was placed in the domain in which the gang was to start
  };
  // Places a member. Returns false with the diagnosis.
  using Placer = FunctionRef<bool(const Pod& member, scheduling::Diagnosis& diagnosis)>;
  using Places = std::vector<std::pair<Pod, std::string>>;  // pods and nodes
  // A node for each member and the victims that would have to be evicted for that.
  struct GangRoom {
    Places places;
    std::vector<Pod> victims;
    bool waits = false;                      // for victims that are already terminating
    std::set<std::string> awaits_cuts = {};  // nodes where the partitioner has to create instances
    std::string why_not;                     // why no pod may be evicted now
  };
  // Shared with API calls, which may end after this object is destroyed.
  struct Shared;
  struct RoomInTheMaking;

  void TakeIn(const reconcile::Listers& view, Time now);
  void TakeInPod(const Pod& before, const Pod& after, Time now);
  struct ForeignNomination;
  void TakeInForeignPromise(const Pod& pod, Time now);
  void JudgeForeignPromise(ForeignNomination& promise, Time now);
  void ExpireForeignNominations(Time now);
  bool SeesToIt(const std::string& pod_key) const;
  std::optional<Time> GoneFor(const Pod& promised) const;
  bool MayTake(const cluster::Pod& pod, const cluster::Pod& bound) const;
  scheduling::Promises PromisesToHeed(const cluster::Pod& pod,
                                      const std::set<std::string>& gang) const;
  void TakeInNode(const Node& before, const Node& after, Time now);
  void TakeAnswers(Time now);
  void TakeBindAnswer(Binding& binding, const Status& answer, Time now);
  void TakeAskAnswer(Binding& binding, const Answer& answer, Time now);
  void Ask(Binding& binding, kube::Client& client);
  // Why the pod may no longer be bound to its node. Empty: it may.
  std::string WhyNotThere(Binding& binding) const;
  void TryAgain(const std::string& key, Time now);
  void OnClusterEvent(const scheduling::ClusterEvent& event, Time now);
  const SchedulerProfile* ProfileFor(const cluster::Pod& pod) const;

  void Decide(const Pod& pod, kube::Client& client, Time now);
  // Chooses a node and reserves resources in the snapshot. Returns false with `diagnosis`.
  bool Place(const Pod& pod, scheduling::Diagnosis& diagnosis, Time now);
  // Assumes the pod on the node and reserves its resources. Not fitting: a Reserve plugin failed,
  // and the caller must release the pod.
  scheduling::Verdict Occupy(const Pod& pod, const Framework& framework,
                             const cluster::NodeInfo& node);
  // Takes over the assumption and the instances that a predecessor asked for. False: there is no
  // such request.
  bool TakeOver(const Pod& pod, const Framework& framework, Time now);
  // Releases an assumption that was not published, as if the pod had not been placed.
  void TakeBack(const std::string& key);
  // Starts the binding.
  void Commit(Binding& binding, kube::Client& client, Time now);
  void Prepare(Binding& binding, kube::Client& client, Time now);
  scheduling::Progress AskPreBinders(Binding& binding, Time now) const;
  void SendWrites(Binding& binding, std::vector<kube::ApiRequest> writes, kube::Client& client);
  // For a pod that waits for instances: kReady when they exist.
  scheduling::Progress LookAtCuts(Binding& binding, Time now);
  void WriteCuts(const reconcile::Listers& view, kube::Client& client);
  void ExpireNodeBackoff(Time now);
  bool HasRoomForDecisions() const;
  // A Bind call is in flight, or the pod has to be read back because the call was not answered.
  bool IsBinding() const { return !asked_.empty(); }
  void Send(Binding& binding, kube::Client& client);
  // Releases the assumption and requeues the pod with back-off.
  enum class AfterThat { kAnyPlace, kSamePlace };
  void GiveUp(const std::string& key, const std::string& why, Time now,
              AfterThat after_that = AfterThat::kAnyPlace);
  void DropBinding(const std::string& key, bool unreserve, Time now);
  void Settle(const Pod& pod, Time now);
  void Arrived(Binding& binding, Time now);
  // Sets the time at which the binding is looked at even without an event. Time::max(): never.
  void SetUntil(Binding& binding, Time until);
  void SetStage(Binding& binding, Binding::Stage stage);
  void BeginPreparing(Binding& binding);
  void EndPreparing(const Binding& binding);
  void PrepareDue(kube::Client& client, Time now);
  void Expire(kube::Client& client, Time now);
  void PrecomputeIfDue();
  bool DecideWithGang(const Pod& pod, kube::Client& client, Time now);
  void PlaceGang(const Gang& gang, kube::Client& client, Time now);
  static bool IsEnough(const Gang& gang, const GangTry& tried) {
    return gang.placed + tried.chosen.size() >= gang.least;
  }
  void TryEach(const Gang& gang, const std::vector<Pod>& members, Placer place, GangTry& tried);
  void TakeBackAll(const GangTry& tried);
  void TryOne(const Gang& gang, const Pod& member, Placer place, GangTry& tried);
  // Tries refused members again that may follow others, then, if members must be near each other,
  // other topology domains. If no attempt places enough members, `tried` is the best attempt. Its
  // assumptions are released, and the refusals of the other attempts are appended to its own.
  void TryFurther(const Gang& gang, GangTry& tried, Time now);
  void TryRefused(const Gang& gang, Placer place, GangTry& tried);
  struct DomainTries;
  void TryDomains(const Gang& gang, const scheduling::GangTies& ties, GangTry& best);
  GangTry TryIn(const Gang& gang, std::span<const size_t> domain, DomainTries& tries);
  // Like Place, but leaves no trace if no node fits or a Reserve plugin fails. `among`: see Engine.
  bool PlaceAmong(const Pod& pod, std::span<const size_t> among, scheduling::Diagnosis& diagnosis);
  void RefuseWhole(const Gang& gang, size_t found, const Refusals& refusals, kube::Client& client,
                   Time now);
  void RefuseGang(const std::vector<Pod>& pods, const std::string& why, Time now);
  void LetSleep(const std::vector<Pod>& pods, const std::vector<const scheduling::Plugin*>& by,
                Time now);
  class RoomSearch;
  GangRoom FindRoom(const Gang& gang, Time now);
  std::string PreemptForGang(const Gang& gang, kube::Client& client, Time now);
  void TakeInMember(const Pod& before, const Pod& after, Time now);
  // Marks the gang for LookAtGangs. `why`: the reason if its members have to be released.
  void MarkGangDirty(const std::string& gang, const std::string& why);
  void LookAtGangs(kube::Client& client, Time now);
  void LookAtGang(const std::string& gang, const std::string& why, kube::Client& client, Time now);
  void Refuse(const SchedulerProfile& profile, const Pod& pod,
              const scheduling::Diagnosis& diagnosis, kube::Client& client, Time now);
  // Preempts for the pod if possible. Returns what was done, or why nothing was.
  std::string Preempt(const SchedulerProfile& profile, const Pod& pod, kube::Client& client,
                      Time now);
  // True if the pod may preempt at all and some pod may be a victim.
  bool MayMakeRoom(const SchedulerProfile& profile, const cluster::Pod& pod) const;
  // By priority only.
  bool MayEvict(const SchedulerProfile& profile, const cluster::Pod& pod,
                const cluster::Pod& other) const;
  // Why the pod keeps waiting for its nominated node, e.g. terminating victims. Empty: it does not.
  std::string WhatItAwaits(const Framework& framework, const Pod& pod, Time now);
  std::string WhatItAwaits(const Pod& pod, const std::vector<Pod>& leaving, Time now);
  bool Leaves(const std::vector<Pod>& leaving, const std::string& node) const;
  bool MayNotBeSeenYet(const std::string& node) const;
  // The pod's namespace has a quota, so the pod may reclaim its guarantee.
  bool HasQuota(const Framework& framework, const cluster::Pod& pod) const;
  std::string ReclaimFor(const SchedulerProfile& profile, const Pod& pod, kube::Client& client,
                         Time now);
  scheduling::Reclaim MakeReclaim(const Framework& framework, const cluster::Pod& pod,
                                  const std::vector<Pod>& leaving,
                                  const std::set<std::string>& gang);
  // Returns the preemption, and whether the partitioner has to create instances for it.
  static std::pair<std::optional<scheduling::Preemption>, bool> FindBy(
      const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
      const cluster::ClusterSnapshot& snapshot, const Pod& pod, const std::string& preferred);
  std::optional<scheduling::Preemption> FindPreemption(const SchedulerProfile& profile,
                                                       const cluster::Pod& pod);
  // Evicted pods that still exist.
  std::vector<Pod> Leaving() const;
  std::vector<Pod> LeavingLostNodes(const cluster::Pod& seen_by) const;
  bool IsOnLostNode(const scheduling::Engine::Placed& placed) const;
  std::vector<Pod> RestOfGangs(const std::vector<Pod>& leaving) const;
  // Sets nodes to the state after their agents have carried out and reported all plans.
  static void FinishPlans(cluster::ClusterSnapshot& snapshot);
  static bool IsSparedByCuts(const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
                             cluster::ClusterSnapshot snapshot, const Pod& pod);
  // True while the pod should wait for a partitioner or an agent instead of evicting pods.
  bool HasPatience(const std::string& pod_key, Time now);
  // Nodes whose agents exceeded agent_patience and have reported nothing since.
  std::vector<std::string> SilentNodes();
  void CountAsSilent(const std::string& node);
  void LeaveOutSilentNodes(const cluster::Pod& pod, cluster::ClusterSnapshot& snapshot);
  scheduling::EvictionUnit UnitOf(const Pod& pod) const;
  // Nominates the nodes and evicts the victims as soon as the nominations are written.
  void MakeRoom(const Places& places, const std::vector<Pod>& victims, kube::Client& client,
                Time now);
  void ExpireAgentTimeouts(Time now);
  // `leaving`: terminating pods that count as gone.
  bool AwaitsAgent(const Pod& pod, const cluster::NodeInfo& nominee,
                   const std::vector<Pod>& leaving, Time now);
  void Promise(const Pod& pod, const std::string& node, Time now);
  void SetNominee(const Pod& pod, const std::string& node, kube::Client& client, Time now);
  std::vector<Pod> LesserNominated(const cluster::Pod& pod, const std::string& node) const;
  void TakeBackPromises(const std::vector<Pod>& pods, kube::Client& client, Time now);
  void WriteNominee(const Pod& pod, const std::string& node, kube::Client& client);
  std::optional<kube::Workers::Call> Evict(const Pod& victim, const Pod& preemptor, Time now);
  void EvictAgain(const Pod& preemptor, kube::Client& client, Time now);
  static void Post(kube::Workers* workers, kube::Client& client, kube::Workers::Call call);
  void ForgetCondition(const std::string& key);
  void PutAside(const std::string& key, const std::string& successor, Time now);
  void Tell(EventQueue telling, Time now);
  void TellSome(kube::Client& client, Time now);
  void TellOfCut(Binding& binding, scheduling::Progress& progress, Time now);
  void AddRemedies(std::vector<EventQueue>& tellings) const;
  void ExplainLater(EventQueue telling);
  std::vector<EventQueue> ExplainSome(Time now);
  Time WhenToExplain(Time now) const;
  reconcile::ReconcileResult Rest(Time now) const;

  SchedulerConfig config_;
  std::map<std::string, SchedulerProfile> profiles_;  // by scheduler name
  SchedulerThreads threads_;
  scheduling::Engine engine_;
  scheduling::SchedulingQueue queue_;
  Cuts cuts_;
  Gangs gangs_;
  const GangScheduling gang_scheduling_;
  const scheduling::QuotaTerms quota_terms_{
      [this](const cluster::Pod& pod, const cluster::Pod& bound) { return MayTake(pod, bound); }};
  SchedulerMeasures measures_;
  std::map<std::string, Binding> bindings_;  // by pod key
  // Evicted pods that the watch does not yet show as terminating; true: evicted for a quota.
  std::map<std::string, bool> going_;
  std::set<std::string> ending_;  // terminating pods that still run
  // Keys of pods with a node: all in kPreparing; of these, to be looked at now; of these, to be
  // looked at when a volume, a budget or another object of the cluster context changes.
  // preparing_on_ groups them by node. deadlines_ holds their timeouts.
  std::set<std::string> preparing_, due_, due_around_;
  std::map<std::string, std::set<std::string>, std::less<>> preparing_on_;
  std::set<std::pair<Time, std::string>> deadlines_;
  std::set<std::string> asked_;                     // see IsBinding
  std::map<std::string, std::string> dirty_gangs_;  // gangs to be looked at, and why
  // How long pods, by key, wait for GPUs to be partitioned or for the nominated node's agent to
  // report the instances of evicted pods as free. Absent: the wait has not begun, victims still
  // run.
  std::map<std::string, std::optional<Time>> patience_;
  // Nodes whose agents did not report in time, as they were then.
  std::map<std::string, Node> silent_;
  // May hold entries that were erased from patience_.
  std::set<std::pair<Time, std::string>> patience_ends_;
  // A pod of another scheduler with a nomination. The nomination counts until `until`.
  struct ForeignNomination {
    Pod pod;
    Time until;
    bool over = false;  // expired, and stays so
  };
  std::map<std::string, ForeignNomination> foreign_;  // by pod key
  // Nominated pods for which all necessary evictions have been started.
  std::set<std::string> has_preempted_for_;
  // Victims whose evictions were not answered, by the preemptor's key.
  std::map<std::string, std::vector<Pod>> unsure_;
  HopelessKinds hopeless_;         // valid for one value of Engine::openings
  HopelessKinds hopeless_claims_;  // for quotas; valid for one value of Engine::changes
  std::vector<Pod> unpromised_;    // pods whose nomination is to be removed
  std::map<std::string, EventQueue> tellings_;  // by pod key
  kube::WorkQueue untold_;                      // pod keys
  std::map<std::string, EventQueue>
      unexplained_;  // by pod key; published, but without a remedy yet
  Time remedies_due_{};
  bool telling_ = false;  // a call that publishes is in flight
  bool retired_ = false;
  uint64_t attempts_ = 0;  // number of bindings so far, for Binding::attempt
  bool answered_ = false;  // since due bindings were looked at
  size_t changes_since_learning_ = 1, pods_known_ = 0;
  std::shared_ptr<Shared> shared_;
};

}  // namespace nos::controllers
