#include "planning/translation/gang_assembly.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "planning/optimize/greedy.h"
#include "scheduling/framework.h"
#include "scheduling/gang_domains.h"
#include "scheduling/pod_kind.h"

namespace nos::planning {
namespace {

constexpr int kMaxDomains = 64;  // in which at least one pod was placed

class Assembler {
 public:
  Assembler(PlanChecker& checker, const Translation& t, const StagedResult& placed, int below,
            int gang, GpuStates& states, const std::function<bool()>& out_of_time, int64_t& looks)
      : t_(t),
        lacking_(static_cast<size_t>(t.problem.gangs[gang].lacking)),
        out_of_time_(out_of_time),
        looks_(looks),
        draft_(t.problem, states, Draft::Free::kKeep),
        play_(checker),
        all_(t.nodes.size()) {
    std::iota(all_.begin(), all_.end(), 0);
    const std::vector<PlacedPod>& pods = placed.draft.pods();
    for (size_t i = 0; i < pods.size(); ++i) {
      const PlacedPod& pod = pods[i];
      if (!pod.alive || t_.problem.classes[pod.cls].level >= below) continue;
      draft_.Place(pod.cls, pod.node, placed.draft.DevicesOf(pod));
      play_.Bind(t_.pending[t_.members[pod.cls][placed.members[i]]], NameOf(pod.node));
    }
    std::vector<int> classes;
    for (size_t c = 0; c < t_.problem.classes.size(); ++c) {
      const PodClass& cls = t_.problem.classes[c];
      if (cls.gang == gang && !cls.extra) classes.push_back(static_cast<int>(c));
    }
    const std::vector<int> order = Ordered(t_.problem, classes, Order::kLargestFirst);
    for (const int cls : order) {
      for (int m = 0; m < t_.problem.classes[cls].count; ++m) {
        const Pod& pod = t_.pending[t_.members[cls][m]];
        members_.push_back(
            {cls, &pod, scheduling::KindOf(*pod), false, scheduling::MayFollow(*pod)});
        pods_.push_back(pod);
      }
    }
    OrderMembers();
  }

  std::vector<GangAssignment> Run() {
    // Computed before any member is placed.
    for (const Member& member : members_) (void)CandidatesOf(member);
    const std::vector<std::vector<int>> domains = Domains();
    int tried = 0;
    for (const std::vector<int>& domain : domains) {
      if (!MayLook() || tried == kMaxDomains) break;
      bool begun = false;
      for (const std::vector<const Member*>& order : orders_) {
        std::vector<GangAssignment> assignments = Try(domain, order);
        if (assignments.size() >= lacking_) return assignments;
        begun = begun || !assignments.empty();
      }
      tried += begun ? 1 : 0;
    }
    return {};
  }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  struct Member {
    int cls = 0;
    const Pod* pod = nullptr;
    std::string kind;
    bool tied = false;  // must be near other members, or they near it
    bool may_follow = false;
  };

  bool MayLook() const { return looks_ > 0 && !out_of_time_(); }

  // First order: largest slices first. Second order, if different: largest share of the free
  // resources first.
  void OrderMembers() {
    std::vector<const Member*>& first = orders_.emplace_back();
    for (const Member& member : members_) first.push_back(&member);
    const auto part = [&](const Member* member) { return -PartOf(member->cls); };
    std::vector<const Member*> second = first;
    std::ranges::stable_sort(second, {}, part);
    if (second != first) orders_.push_back(std::move(second));
  }

  // The sum of the class's requests as shares of the cluster's free resources.
  double PartOf(int cls) const {
    const std::vector<int64_t>& requests = t_.problem.classes[cls].requests;
    double part = 0;
    for (size_t d = 0; d < requests.size(); ++d) {
      part += static_cast<double>(requests[d]) / std::max(t_.problem.total_free[d], 1.0);
    }
    return part;
  }

  const std::string& NameOf(int node) const { return t_.nodes[node]->node->meta.name; }

  std::vector<std::vector<int>> Domains() {
    const scheduling::GangTies ties(pods_);
    for (size_t m = 0; m < members_.size(); ++m) members_[m].tied = ties.IsTied(m);
    if (!ties.near()) return {all_};
    const std::vector<int64_t> room = RoomToBegin();
    std::vector<std::vector<int>> domains;
    const auto found = ties.Domains(t_.nodes, [&](size_t node) { return room[node]; });
    domains.reserve(found.size());
    for (const std::vector<size_t>& nodes : found) domains.emplace_back(nodes.begin(), nodes.end());
    return domains;
  }

  // By node: about how many pods like the first tied member fit, taking the first such kind that
  // fits anywhere.
  std::vector<int64_t> RoomToBegin() {
    std::vector<int64_t> room(all_.size());
    const auto most = static_cast<int64_t>(members_.size());
    bool any = false;
    for (size_t m = 0; m < members_.size() && !any && MayLook(); ++m) {
      if (!members_[m].tied) continue;
      const cluster::Pod& pod = **members_[m].pod;
      const scheduling::Cycle& cycle = play_.CycleOf(pod);
      const cluster::ResourceVector requests = cluster::RequestsOf(pod);
      for (const int node : CandidatesOf(members_[m])) {
        --looks_;
        if (!VerdictNow(cycle, pod, play_.At(NameOf(node))).fits()) continue;
        const int64_t copies = scheduling::CopiesOn(*t_.nodes[node], requests, true, most);
        room[node] = std::max<int64_t>(copies, 1);
        any = true;
      }
    }
    return room;
  }

  // The nodes with capacity for the pod beside those already placed, ignoring filters.
  const std::vector<int>& CandidatesOf(const Member& member) {
    const auto [at, fresh] = candidates_.try_emplace(member.kind);
    if (!fresh) return at->second;
    const int shape = t_.problem.classes[member.cls].shape;
    for (const int node : all_) {
      if (!draft_.HasResources(member.cls, node)) continue;
      if (draft_.HasRoom(shape, node).value_or(false)) at->second.push_back(node);
    }
    return at->second;
  }

  // Places the first tied member in this domain and the others where they fit then. Members that
  // filters reject are tried again after others are placed.
  std::vector<GangAssignment> Try(const std::vector<int>& domain, std::vector<const Member*> left) {
    const size_t mark = draft_.Mark();
    PlanChecker::Play play = play_;
    std::vector<GangAssignment> assignments;
    std::vector<bool> in_domain(all_.size());
    for (const int node : domain) in_domain[node] = true;
    bool begun = false;
    for (bool again = true; again;) {
      again = false;
      std::set<std::string> failed;  // kinds, since the last successful placement
      std::erase_if(left, [&](const Member* member) {
        if (!MayLook() || failed.contains(member->kind)) return false;
        const int node = Find(*member, member->tied && !begun ? &in_domain : nullptr, play);
        if (node < 0) {
          failed.insert(member->kind);
          return false;
        }
        again = again || !failed.empty();
        failed.clear();
        begun = begun || member->tied;
        draft_.Place(member->cls, node, devices_);
        play.Bind(*member->pod, NameOf(node));
        assignments.push_back({member->cls, node});
        return true;
      });
      // Kinds without capacity do not get any later.
      if (begun) std::erase_if(left, [](const Member* member) { return !member->may_follow; });
      if (assignments.size() + left.size() < lacking_) break;
    }
    draft_.Rollback(mark);
    return assignments;
  }

  // The free resources of the node that the class requests, in the same units.
  double RestOn(int cls, int node) const {
    const std::vector<int64_t>& requests = t_.problem.classes[cls].requests;
    double rest = 0;
    for (size_t d = 0; d < requests.size(); ++d) {
      if (requests[d] <= 0) continue;
      rest += static_cast<double>(draft_.FreeOf(node)[d]) / std::max(t_.problem.total_free[d], 1.0);
    }
    return rest;
  }

  // The node with the lowest cost, then the fullest; -1 if none. Fills devices_. `among`: allowed
  // nodes.
  int Find(const Member& member, const std::vector<bool>* among, PlanChecker::Play& play) {
    const int shape = t_.problem.classes[member.cls].shape;
    const cluster::Pod& pod = **member.pod;
    const scheduling::Cycle& cycle = play.CycleOf(pod);
    std::vector<Device> devices;
    std::pair<uint64_t, double> least;
    int best = -1;
    const std::vector<int>& candidates = CandidatesOf(member);
    for (const int node : candidates) {
      if (among != nullptr && !(*among)[node]) continue;
      if (!draft_.HasResources(member.cls, node)) continue;
      --looks_;
      if (!draft_.HasRoom(shape, node).value_or(false) ||
          !VerdictNow(cycle, pod, play.At(NameOf(node))).fits()) {
        continue;
      }
      const std::optional<uint64_t> cost = draft_.FindSlices(shape, node, &devices);
      if (!cost) continue;
      const std::pair weight(*cost, RestOn(member.cls, node));
      if (best >= 0 && least <= weight) continue;
      least = weight;
      best = node;
      devices_.swap(devices);
    }
    return best;
  }

  const Translation& t_;
  const size_t lacking_;
  const std::function<bool()>& out_of_time_;
  int64_t& looks_;
  Draft draft_;             // with the pods of `placed`
  PlanChecker::Play play_;  // with the same pods
  std::vector<Member> members_;
  std::vector<Pod> pods_;                               // of members_
  std::vector<std::vector<const Member*>> orders_;      // orders in which members are tried
  std::vector<int> all_;                                // all nodes
  std::map<std::string, std::vector<int>> candidates_;  // by kind of pod: nodes
  std::vector<Device> devices_;
};

}  // namespace

std::vector<GangAssignment> AssembleGang(PlanChecker& checker, const Translation& translation,
                                         const StagedResult& placed, int below, int gang,
                                         GpuStates& states,
                                         const std::function<bool()>& out_of_time, int64_t& looks) {
  return Assembler(checker, translation, placed, below, gang, states, out_of_time, looks).Run();
}

}  // namespace nos::planning
