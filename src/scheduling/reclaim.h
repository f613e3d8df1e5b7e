// Who has to go so that a pod gets what its namespace's quota guarantees, or its fair share of what
// is idle: pods of others that run on what their quotas borrow, wherever in the cluster they are.
//
//   Reclaim reclaim(engine.ledger(), balance_on, options, unit_of);
//   reclaim.CountGone(ending);                      // evicted already, for whomever
//   if (auto found = reclaim.Find(framework, snapshot, pod)) Evict(found->victims);
//
// The rules are those of quota/claim.h. A place is looked for first where nobody has to go; then on
// each node as many go as have to for its resources, GPUs cut anew if need be, and as few more
// anywhere as its quota takes. Of all such plans that is taken which violates the fewest disruption
// budgets, then has the fewest victims, then the least important, then the youngest. Nodes are
// looked at in the order of the least important pod that alone might be enough there, until no
// better one can come, or there are 100 plans. Where there is none, less important pods of its own
// quota go, too, wherever they are, so that min covers it.
//
// A plan without victims: those that are on their way out are enough.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quota/claim.h"
#include "quota/ledger.h"
#include "scheduling/preemption/lacks.h"
#include "scheduling/quota_plugin.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {

class Reclaim final : public EvictionRule {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  // The pods that have to go together with this one, with itself: its gang.
  using UnitOfPod = std::function<EvictionUnit(const Pod&)>;

  // As the pod has to see it, without itself, if it is to run on the node; "": on any.
  using BalanceOn = std::function<quota::Balance(std::string_view node)>;

  // The ledger must outlive it and not change, and so must what the functions refer to.
  Reclaim(quota::Ledger& ledger, BalanceOn balance_on, const QuotaOptions& options,
          UnitOfPod unit_of);

  // What others were promised that go before the pod; nothing, if this is not called.
  void Heed(Promises promises) { promises_ = std::move(promises); }
  // Pods that do not go, by key; none, if this is not called.
  void Spare(std::set<std::string> keys) { spared_ = std::move(keys); }
  // They go whatever is found, and are in no snapshot that is given.
  void CountGone(const std::vector<Pod>& pods);
  // `preferred`: a node that it is to get if it fits there. REQUIRES: a quota is in force in the
  // pod's namespace.
  std::optional<Preemption> Find(const Framework& framework,
                                 const cluster::ClusterSnapshot& snapshot, const Pod& pod,
                                 std::string_view preferred = "");
  // The pod takes its place there, and those that it needs gone are: for the next one of a gang.
  void Carry(const Preemption& found, const cluster::ClusterSnapshot& snapshot, const Pod& pod);

  void LookAt(const cluster::NodeInfo& node) override;
  EvictionUnit UnitOf(const Pod& pod) const override { return unit_of_(pod); }
  bool MayGo(const EvictionUnit& unit) const override;
  void Count(const EvictionUnit& unit, bool gone) override;
  bool LetsIn() const override { return !claim_->WhyNot(); }
  std::optional<std::vector<EvictionUnit>> More(Budgets& budgets) override;
  bool WantsFewest() const override { return true; }
  bool MayBeEnough(const EvictionUnit& unit) const override;
  double WorthOf(const EvictionUnit& unit) const override;
  std::optional<std::vector<size_t>> Order(const cluster::ClusterSnapshot& snapshot) override;
  bool IsGood(const Preemption& found, size_t place) const override;

 private:
  // Pods of one quota that are alike in what is limited for the pod, the youngest last.
  struct Group {
    size_t account;
    std::vector<Pod> pods = {};
    std::vector<const quota::Amounts*> charges = {};
    std::vector<size_t> budgets = {};  // that count them
  };
  // Of a group, while some are counted as gone: the next to go, if there is one.
  struct Head {
    const Group* group;
    size_t left;  // of the group
    EvictionUnit unit = {};
    quota::Holding holding = {};
  };
  struct Taken {
    EvictionUnit unit;
    bool violates;  // a budget
  };
  // A node, and the least important of its pods that may go and are of use.
  struct Place {
    size_t node;
    const cluster::Pod* alone;  // that might be enough; null: none is
    const cluster::Pod* least;
  };

  // By pods of a snapshot.
  using Charges = std::unordered_map<const cluster::Pod*, const quota::Amounts*>;

  void CountAll(size_t account, const quota::Amounts& charge, int sign);
  quota::Claim ClaimIn(const quota::Balance& balance) const;
  Charges ChargesOfThoseThatMayGo() const;
  std::optional<Place> PlaceOn(const cluster::NodeInfo& node, const cluster::ResourceVector& asked,
                               const Charges& may_go) const;
  bool MayGoWithoutQuota(const cluster::Pod& pod) const;
  // The best that have room, one for each amount that the pod may count for.
  std::vector<const cluster::NodeInfo*> NodesThatFit(const Framework& framework,
                                                     const cluster::ClusterSnapshot& snapshot,
                                                     std::string_view preferred) const;
  std::optional<Preemption> WithRoom(const cluster::NodeInfo& node, Budgets budgets);
  std::optional<Preemption> WithoutRoom(const Framework& framework,
                                        const cluster::ClusterSnapshot& snapshot,
                                        const Budgets& budgets);
  std::optional<Preemption> InPlaceOfItsOwn(const Framework& framework,
                                            const cluster::ClusterSnapshot& snapshot,
                                            Budgets budgets);
  void SpareOwn(const Preemption& found, std::vector<EvictionUnit>& own);
  quota::Holding HoldingOf(const EvictionUnit& unit) const;
  bool IsGone(const EvictionUnit& unit) const;
  bool HasExcess(size_t account) const;
  void Collect(const Budgets& budgets);
  void CollectOf(size_t account, const Budgets& budgets,
                 const std::vector<cluster::ResourceId>& limited);
  bool Advance(Head& head) const;
  std::vector<Head> Heads() const;
  std::optional<std::vector<Taken>> TakeUntilLetIn(Budgets budgets);
  bool MayGoInTurn(const std::vector<Taken>& order);

  quota::Ledger& ledger_;
  const BalanceOn balance_on_;
  quota::Balance balance_;                    // on any node
  quota::Balance settled_;                    // that without what is only promised
  std::map<size_t, quota::Amounts> counted_;  // by account, on top of what balance_on_ says
  const QuotaOptions options_;
  const UnitOfPod unit_of_;
  Promises promises_;
  std::set<std::string> spared_;
  std::map<std::string, Pod> gone_;  // by key
  Pod pod_;
  std::vector<Group> groups_;           // whose pods may go for the pod
  std::vector<Place> places_;           // in the order in which they are looked at
  Lacks lacks_;                         // of the node that is looked at
  std::optional<quota::Claim> on_any_;  // the pod's; absent before Find
  // Of one that counts for more on one node than on another: by the memory of their GPUs.
  std::map<quota::GpuWorth, quota::Claim> by_worth_;
  quota::Claim* claim_ = nullptr;  // of these, that on the node that is looked at
};

// Whether `a` goes before `b` where either would do: of lower priority, else younger.
bool IsLessImportant(const cluster::Pod& a, const cluster::Pod& b);

// The cluster cannot do without it, or it comes back at once where it was.
bool IsSystemPod(const cluster::Pod& pod);

}  // namespace nos::scheduling
