// Binds pods to nodes, as kube-scheduler does: takes waiting pods by priority, then age, filters
// and scores nodes with the framework of the profile that the pod names, binds, and otherwise says
// why not in PodScheduled=False, Unschedulable. A pod that did not fit is tried again only when
// something happened that could help it.
//
// Where the framework has GPUs cut (GpuCutting), a pod may get a node that does not have its MIG
// instances yet: exact ones are promised to it, the node's agent is asked to cut them (cuts.h), and
// the pod is bound when the kubelet offers them.
//
// From a decision to its binding a pod is assumed on its node and what it needs there is reserved;
// what fails on the way is taken back. One that is bound counts until the watch shows what became
// of it; if a binding is not answered, the pod itself is asked for.
//
// It decides on the caller's thread and leaves calls to Workers, if there are any; without, it
// makes them itself, one by one, in an order that repeats.
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
#include "controllers/scheduler/cuts.h"
#include "controllers/gangs.h"
#include "reconcile/reconciler.h"
#include "controllers/scheduler/measures.h"
#include "gpu/catalogue.h"
#include "kube/event_recorder.h"
#include "kube/workers.h"
#include "scheduling/engine.h"
#include "scheduling/gang_starts.h"
#include "scheduling/preemption.h"
#include "scheduling/plugins/capacity_scheduling/plugin.h"
#include "scheduling/queue.h"
#include "scheduling/reclaim.h"

namespace nos::controllers {

struct SchedulerProfile {
  std::string scheduler_name;
  const scheduling::Framework* framework;
  // None: pods of this profile take no other pod's place.
  std::optional<scheduling::PreemptionOptions> preemption = scheduling::PreemptionOptions();
  // As that one, but with GPUs cut where need be: for what would help. Null: it has them cut.
  const scheduling::Framework* cutting = nullptr;
  // Whether others have to go for what quotas guarantee, if the framework heeds them.
  bool reclaims = true;
};

struct SchedulerConfig {
  scheduling::QueueOptions queue;
  // Pauses before a pod is asked for whose binding was not answered.
  kube::BackOff asks{std::chrono::seconds(1), std::chrono::seconds(10)};
  // How long a node's agent may take to tell that the instances of evicted pods are free.
  Duration agent_patience = std::chrono::seconds(30);
  size_t decisions_per_call = 500;  // then it looks at what has happened meanwhile
  size_t most_bindings = 256;       // under way
  // Pods that wait for what has to be done before; others that would have to are tried again later.
  size_t most_preparing = 10'000;
  Cuts::Options cuts{};
  Duration tell_of_cuts_after = std::chrono::seconds(10);  // most GPUs are cut by then
  // Conditions, and Events as many, at once; fewer while pods are being bound, which goes first at
  // the API server, too.
  size_t tellings_per_call = 16;
  size_t tellings_beside_bindings = 2;
  size_t remedies_per_call = 1;  // looked for, for as many kinds of pods
  // While pods wait to be decided on or are being bound, so often.
  Duration remedies_beside_bindings_every = std::chrono::seconds(1);
  size_t most_tellings = 100'000;  // that wait; beyond, the oldest wait for the next refusal
};

// For a scheduler that decides and leaves the calls to others.
struct SchedulerThreads {
  kube::Workers* binders = nullptr;
  kube::Workers* teller = nullptr;  // with one thread
  std::function<void()> wake{};     // called from any thread when Reconcile has something to do
};

class Scheduler final : public reconcile::Reconciler {
 public:
  // Frameworks, catalogue and metrics (null: none are kept) must outlive it, and so must the
  // workers outlive its calls.
  Scheduler(SchedulerConfig config, std::vector<SchedulerProfile> profiles,
            const gpu::Catalogue& catalogue, SchedulerThreads threads = {},
            Metrics* metrics = nullptr);
  ~Scheduler() override;

  // Key: kClusterKey. Needs View::changes.
  reconcile::Outcome Reconcile(const std::string& key, const reconcile::View& view, kube::Client& client,
                    const Clock& clock) override;

  // From now on it decides nothing more: somebody else will. Whom it has chosen a node for, but not
  // begun to bind, is left to the successor.
  void Retire() { retired_ = true; }
  // Nothing is on the way to a binding that a successor would not see, nor an eviction, nor what an
  // agent is asked to cut: it may take over. What is bound counts until the watch shows it.
  bool IsQuiet() const {
    return bindings_.size() == preparing_.size() && going_.empty() &&
           cuts_.AreShown(engine_.snapshot());
  }

  const scheduling::SchedulingQueue& queue() const { return queue_; }
  // Pods that have a node, and are not seen to be bound there.
  size_t bindings() const { return bindings_.size(); }
  // The cluster as it takes it to be, with what is reserved for pods on their way to a binding.
  const cluster::ClusterSnapshot& snapshot() const { return engine_.snapshot(); }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;
  using Framework = scheduling::Framework;

  // Kinds of pods for which no victims were found, as long as nothing has happened since that could
  // help: as a count tells that grows then.
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
  // A pod on its way from the decision to what the watch shows.
  struct Binding {
    Pod pod;
    const Framework* framework = nullptr;
    std::string node;
    scheduling::CycleState state;
    // kBound: the watch has yet to show it; kDoubtful: nobody knows whether it is.
    enum class Stage { kPreparing, kSent, kBound, kDoubtful } stage = Stage::kPreparing;
    // The node as it was when this was last looked at, and when the pod was last found to fit.
    std::shared_ptr<const cluster::NodeInfo> seen = {}, fits = {};
    std::string why = {};       // of kDoubtful: the answer to the binding
    int asked = 0;              // times, since
    uint64_t attempt = 0;       // no other binding has it, of whatever pod
    size_t writes = 0;          // of pre-bind plugins, not answered yet
    bool cuts = false;          // waits for its instances
    bool told_of_cuts = false;  // and its condition says so
    bool held_back = false;     // nothing is written for it before enough of its gang have theirs
    bool ready = false;         // nothing is left to be done before it is bound
    std::string gang = {};      // bound together with at least so many of it
    size_t least = 0;
    bool arrived = false;      // it is bound, and that was told
    Time until = Time::max();  // set by SetUntil
  };
  struct Answer {
    std::string key;
    uint64_t attempt = 0;  // of which it is
    enum class Of { kPreBind, kBind, kAsk } of = Of::kPreBind;
    Status status;
    std::string node;  // kAsk: where the pod is bound, if it is
  };
  // What is to be said of a pod.
  struct Telling {
    Pod pod;
    std::string reason, message;  // of the condition PodScheduled and the Event, or of the latter
    std::string node;             // not empty: of an Event alone; it was bound, or evicted there
    bool explain = false;         // what would help is to be added to the message
    int conflicts = 0;            // met while it was being told
  };
  // One that is about to be placed.
  struct Gang {
    std::string name;
    size_t least = 0, placed = 0;  // members that must have a node, and those that have one
    std::vector<Pod> waiting;
  };
  using Refusals = scheduling::GangRefusals;
  // What became of members of a gang that were tried one after the other.
  struct GangTry {
    std::vector<std::string> chosen = {};  // keys of those that have found a node, in this order
    Refusals refusals = {};
    bool gave_up = false;  // something could not be reserved for one: it is tried again later
    bool begun = false;    // in the domain where it was to begin
  };
  // Places a member. False: see the diagnosis.
  using Placer = FunctionRef<bool(const Pod& member, scheduling::Diagnosis& diagnosis)>;
  using Places = std::vector<std::pair<Pod, std::string>>;  // pods and nodes
  // Where its members would go, and who would have to go for them.
  struct GangRoom {
    Places places;
    std::vector<Pod> victims;
    bool waits = false;                      // for some that are on their way out
    std::set<std::string> awaits_cuts = {};  // nodes where somebody else has to cut GPUs for them
    std::string why_not;                     // it may not be made now
  };
  // What calls need that may end after this object.
  struct Shared;
  struct RoomInTheMaking;

  void TakeIn(const reconcile::View& view, Time now);
  void TakeInPod(const Pod& before, const Pod& after, Time now);
  struct ForeignPromise;
  void TakeInForeignPromise(const Pod& pod, Time now);
  void JudgeForeignPromise(ForeignPromise& promise, Time now);
  void HeedForeignPromises(Time now);
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
  // Why the pod may not be bound to its node any more; empty: it may.
  std::string WhyNotThere(Binding& binding) const;
  void TryAgain(const std::string& key, Time now);
  void Happened(const scheduling::ClusterEvent& event, Time now);
  const SchedulerProfile* ProfileFor(const cluster::Pod& pod) const;

  void Decide(const Pod& pod, kube::Client& client, Time now);
  // Chooses a node and takes what the pod needs there, in the snapshot. False: see `diagnosis`.
  bool Place(const Pod& pod, scheduling::Diagnosis& diagnosis, Time now);
  // The pod takes what it needs on the node. Not fitting: a plugin cannot reserve it, and the pod
  // is to be taken back.
  scheduling::Verdict Occupy(const Pod& pod, const Framework& framework,
                             const cluster::NodeInfo& node);
  // Gives the pod the place and the instances that a predecessor is having cut for it. False: there
  // are none.
  bool TakeOver(const Pod& pod, const Framework& framework, Time now);
  // As if it had not been placed; nobody has seen it.
  void TakeBack(const std::string& key);
  // It shall be bound.
  void Commit(Binding& binding, kube::Client& client, Time now);
  void Prepare(Binding& binding, kube::Client& client, Time now);
  scheduling::Progress AskPreBinders(Binding& binding, Time now) const;
  void SendWrites(Binding& binding, std::vector<kube::ApiRequest> writes, kube::Client& client);
  // Of one that waits for GPUs to be cut: kReady when they are.
  scheduling::Progress LookAtCuts(Binding& binding, Time now);
  void WriteCuts(const reconcile::View& view, kube::Client& client);
  void HeedRests(Time now);
  bool HasRoomForDecisions() const;
  // The API server is asked for a binding, or is to be asked what became of one.
  bool IsBinding() const { return !asked_.empty(); }
  void Send(Binding& binding, kube::Client& client);
  // Takes the assumption back and tries the pod again after its pause.
  enum class AfterThat { kAnyPlace, kSamePlace };
  void GiveUp(const std::string& key, const std::string& why, Time now,
              AfterThat after_that = AfterThat::kAnyPlace);
  void DropBinding(const std::string& key, bool unreserve, Time now);
  void Settle(const Pod& pod, Time now);
  void Arrived(Binding& binding, Time now);
  // It is looked at when that has come, whatever happens. Time::max(): only when something does.
  void SetUntil(Binding& binding, Time until);
  void SetStage(Binding& binding, Binding::Stage stage);
  void BeginPreparing(Binding& binding);
  void EndPreparing(const Binding& binding);
  void PrepareDue(kube::Client& client, Time now);
  void Expire(kube::Client& client, Time now);
  void LearnIfDue();
  bool DecideWithGang(const Pod& pod, kube::Client& client, Time now);
  void PlaceGang(const Gang& gang, kube::Client& client, Time now);
  static bool IsEnough(const Gang& gang, const GangTry& tried) {
    return gang.placed + tried.chosen.size() >= gang.least;
  }
  void TryEach(const Gang& gang, const std::vector<Pod>& members, Placer place, GangTry& tried);
  void TakeBackAll(const GangTry& tried);
  void TryOne(const Gang& gang, const Pod& member, Placer place, GangTry& tried);
  // Tries those again that were refused and may follow others, and then, if members have to be near
  // each other, other topology domains. If too few find a node in any, the best of all tries is
  // left, of which nothing is kept, with the refusals of the others behind its own.
  void TryFurther(const Gang& gang, GangTry& tried, Time now);
  void TryRefused(const Gang& gang, Placer place, GangTry& tried);
  struct DomainTries;
  void TryDomains(const Gang& gang, const scheduling::GangTies& ties, GangTry& best);
  GangTry TryIn(const Gang& gang, std::span<const size_t> domain, DomainTries& tries);
  // As Place, without a trace when it finds no node or a plugin cannot reserve. `among`: see
  // Engine.
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
  // It is to be looked at; `why` it may have to give its places back.
  void Stir(const std::string& gang, const std::string& why);
  void LookAtGangs(kube::Client& client, Time now);
  void LookAtGang(const std::string& gang, const std::string& why, kube::Client& client, Time now);
  void Refuse(const SchedulerProfile& profile, const Pod& pod,
              const scheduling::Diagnosis& diagnosis, kube::Client& client, Time now);
  // Makes room for the pod if that is possible. Returns why not, or what was done.
  std::string Preempt(const SchedulerProfile& profile, const Pod& pod, kube::Client& client,
                      Time now);
  // Whether others may have to go for it, and there may be any of whom that is true.
  bool MayMakeRoom(const SchedulerProfile& profile, const cluster::Pod& pod) const;
  // By its priority.
  bool MayEvict(const SchedulerProfile& profile, const cluster::Pod& pod,
                const cluster::Pod& other) const;
  // What the pod waits for: the end of others on the node that it was promised. Empty: nothing.
  std::string WhatItAwaits(const Framework& framework, const Pod& pod, Time now);
  std::string WhatItAwaits(const Pod& pod, const std::vector<Pod>& leaving, Time now);
  bool Leaves(const std::vector<Pod>& leaving, const std::string& node) const;
  bool MayNotBeSeenYet(const std::string& node) const;
  // The pod's namespace has a quota, by which it may have others go.
  bool HasQuota(const Framework& framework, const cluster::Pod& pod) const;
  std::string ReclaimFor(const SchedulerProfile& profile, const Pod& pod, kube::Client& client,
                         Time now);
  scheduling::Reclaim MakeReclaim(const Framework& framework, const cluster::Pod& pod,
                                  const std::vector<Pod>& leaving,
                                  const std::set<std::string>& gang);
  // What is found, and whether somebody else has to cut GPUs for it then.
  static std::pair<std::optional<scheduling::Preemption>, bool> FindBy(
      const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
      const cluster::ClusterSnapshot& snapshot, const Pod& pod, const std::string& preferred);
  std::optional<scheduling::Preemption> FindPreemption(const SchedulerProfile& profile,
                                                       const cluster::Pod& pod);
  // Evicted already, and still there.
  std::vector<Pod> Leaving() const;
  std::vector<Pod> LeavingLostNodes(const cluster::Pod& seen_by) const;
  bool IsOnLostNode(const scheduling::Engine::Placed& placed) const;
  std::vector<Pod> RestOfGangs(const std::vector<Pod>& leaving) const;
  // As nodes will be when what their agents do now is done and told.
  static void FinishPlans(cluster::ClusterSnapshot& snapshot);
  static bool IsSparedByCuts(const SchedulerProfile& profile, scheduling::Reclaim& reclaim,
                             cluster::ClusterSnapshot snapshot, const Pod& pod);
  // For what somebody else has to do, after which nobody would have to go.
  bool HasPatience(const std::string& pod_key, Time now);
  // Whose agents were waited for in vain, and have said nothing since.
  std::vector<std::string> SilentNodes();
  void CountAsSilent(const std::string& node);
  void LeaveOutSilentNodes(const cluster::Pod& pod, cluster::ClusterSnapshot& snapshot);
  scheduling::EvictionUnit UnitOf(const Pod& pod) const;
  // Promises the nodes, and has the victims go as soon as that is written.
  void MakeRoom(const Places& places, const std::vector<Pod>& victims, kube::Client& client,
                Time now);
  void HeedPatience(Time now);
  // `leaving`: who is gone then, too, in time.
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
  void Tell(Telling telling, Time now);
  void TellSome(kube::Client& client, Time now);
  void TellOfCut(Binding& binding, scheduling::Progress& progress, Time now);
  void AddRemedies(std::vector<Telling>& tellings) const;
  void ExplainLater(Telling telling);
  std::vector<Telling> ExplainSome(Time now);
  Time WhenToExplain(Time now) const;
  reconcile::Outcome Rest(Time now) const;

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
  // Evicted pods that the watch does not show so, and whether that was for a quota.
  std::map<std::string, bool> going_;
  std::set<std::string> ending_;  // those that it shows so, and that still run
  // Of those that have a node, by key: who is prepared, also by node; of these, who is to be looked
  // at, and who when something around changes; when others are.
  std::set<std::string> preparing_, due_, due_around_;
  std::map<std::string, std::set<std::string>, std::less<>> preparing_on_;
  std::set<std::pair<Time, std::string>> deadlines_;
  std::set<std::string> asked_;                 // see IsBinding
  std::map<std::string, std::string> stirred_;  // gangs to be looked at, and why
  // How long pods, by key, wait for GPUs to be cut or for the nominated node's agent to tell that
  // the instances of evicted ones are free. None: that has not begun, the others are still there.
  std::map<std::string, std::optional<Time>> patience_;
  std::map<std::string, Node> silent_;  // whose agents were waited for, as they were then
  std::set<std::pair<Time, std::string>> patience_ends_;  // some of them perhaps for nobody
  // A pod that others serve and have promised a node: they are believed to be alive until then.
  struct ForeignPromise {
    Pod pod;
    Time until;
    bool over = false;  // for good
  };
  std::map<std::string, ForeignPromise> foreign_;  // by pod key
  // Those that were promised something and have had others go for that, as far as it takes.
  std::set<std::string> saw_to_it_;
  // Whose evictions were not answered, by the keys of those for whom they are.
  std::map<std::string, std::vector<Pod>> unsure_;
  HopelessKinds hopeless_;                      // since Engine::openings
  HopelessKinds hopeless_claims_;               // for quotas, since Engine::changes
  std::vector<Pod> unpromised_;                 // whose nominated node is to be taken back
  std::map<std::string, Telling> tellings_;     // by pod key
  kube::WorkQueue untold_;                      // pod keys
  std::map<std::string, Telling> unexplained_;  // by pod key; told, but not yet what would help
  Time remedies_due_{};
  bool telling_ = false;  // some are being told
  bool retired_ = false;
  uint64_t attempts_ = 0;  // at bindings
  bool answered_ = false;  // since those that are due were looked at
  size_t changes_since_learning_ = 1, pods_known_ = 0;
  std::shared_ptr<Shared> shared_;
};

}  // namespace nos::controllers
