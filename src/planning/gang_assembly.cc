#include "planning/gang_assembly.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "planning/greedy.h"
#include "scheduling/gang_domains.h"
#include "scheduling/pod_kind.h"

namespace nos::planning {
namespace {

constexpr size_t kMostDomains = 64;  // that are tried

class Assembler {
 public:
  Assembler(PlanChecker& checker, const Translation& t, const StagedResult& around, int below,
            int gang, GpuStates& states, const std::function<bool()>& out_of_time)
      : t_(t),
        lacking_(static_cast<size_t>(t.problem.gangs[gang].lacking)),
        out_of_time_(out_of_time),
        draft_(t.problem, states, Draft::Free::kKeep),
        play_(checker),
        all_(t.nodes.size()) {
    std::iota(all_.begin(), all_.end(), 0);
    const std::vector<PlacedPod>& pods = around.draft.pods();
    for (size_t i = 0; i < pods.size(); ++i) {
      const PlacedPod& pod = pods[i];
      if (!pod.alive || t_.problem.classes[pod.cls].level >= below) continue;
      draft_.Place(pod.cls, pod.node, around.draft.DevicesOf(pod));
      play_.Bind(t_.pending[t_.members[pod.cls][around.members[i]]], NameOf(pod.node));
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
        members_.push_back({cls, &pod, scheduling::KindOf(*pod)});
        pods_.push_back(pod);
      }
    }
    for (Member& member : members_) member.tied = scheduling::IsTied(**member.pod, pods_);
    OrderMembers();
  }

  std::vector<Seating> Run() {
    const std::vector<std::vector<int>> domains = Domains();
    for (const std::vector<int>& domain : domains) {
      if (out_of_time_()) break;
      for (const std::vector<const Member*>& order : orders_) {
        std::vector<Seating> seats = Try(domain, order);
        if (seats.size() >= lacking_) return seats;
      }
    }
    return {};
  }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  struct Member {
    int cls = 0;
    const Pod* pod = nullptr;
    std::string kind;
    bool tied = false;  // to others of the gang, which have to be near it or it near them
  };

  // Those with the largest slices first; if that does not do, those that ask for most of the rest.
  void OrderMembers() {
    std::vector<const Member*>& first = orders_.emplace_back();
    for (const Member& member : members_) first.push_back(&member);
    const auto part = [&](const Member* member) { return -PartOf(member->cls); };
    std::vector<const Member*> second = first;
    std::ranges::stable_sort(second, {}, part);
    if (second != first) orders_.push_back(std::move(second));
  }

  // What the class asks for, in parts of all that is free.
  double PartOf(int cls) const {
    const std::vector<int64_t>& requests = t_.problem.classes[cls].requests;
    double part = 0;
    for (size_t d = 0; d < requests.size(); ++d) {
      part += static_cast<double>(requests[d]) / std::max(t_.problem.total_free[d], 1.0);
    }
    return part;
  }

  const std::string& NameOf(int node) const { return t_.nodes[node]->node->meta.name; }

  std::vector<std::vector<int>> Domains() const {
    std::vector<std::vector<int>> domains;
    const auto found = scheduling::GangDomains(pods_, t_.nodes);
    for (const std::vector<size_t>& nodes : found) {
      if (domains.size() == kMostDomains) break;
      domains.emplace_back(nodes.begin(), nodes.end());
    }
    if (domains.empty()) domains.push_back(all_);  // nobody has to be near another one
    return domains;
  }

  // The first tied one in this domain, the others where they fit then. Whom filters refuse is tried
  // again when others have found places.
  std::vector<Seating> Try(const std::vector<int>& domain, std::vector<const Member*> left) {
    const size_t mark = draft_.Mark();
    PlanChecker::Play play = play_;
    std::vector<Seating> seats;
    bool begun = false;
    for (bool again = true; again;) {
      again = false;
      std::set<std::string> failed;  // kinds, since somebody found a place
      std::erase_if(left, [&](const Member* member) {
        if (failed.contains(member->kind) || out_of_time_()) return false;
        const int node = Find(*member, member->tied && !begun ? domain : all_, play);
        if (node < 0) {
          failed.insert(member->kind);
          return false;
        }
        again = again || !failed.empty();
        failed.clear();
        begun = begun || member->tied;
        draft_.Place(member->cls, node, devices_);
        play.Bind(*member->pod, NameOf(node));
        seats.push_back({member->cls, node});
        return true;
      });
    }
    draft_.Rollback(mark);
    return seats;
  }

  // What is left there of what the class asks for, in the same parts.
  double RestOn(int cls, int node) const {
    const std::vector<int64_t>& requests = t_.problem.classes[cls].requests;
    double rest = 0;
    for (size_t d = 0; d < requests.size(); ++d) {
      if (requests[d] <= 0) continue;
      rest += static_cast<double>(draft_.FreeOf(node)[d]) / std::max(t_.problem.total_free[d], 1.0);
    }
    return rest;
  }

  // The node where it costs least, then the fullest; -1: none. Fills devices_.
  int Find(const Member& member, const std::vector<int>& nodes, PlanChecker::Play& play) {
    const int shape = t_.problem.classes[member.cls].shape;
    std::vector<Device> devices;
    std::pair<uint64_t, double> least;
    int best = -1;
    for (const int node : nodes) {
      if (!draft_.HasResources(member.cls, node) || !draft_.HasRoom(shape, node).value_or(false) ||
          !play.Fits(**member.pod, NameOf(node))) {
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
  Draft draft_;             // with those around
  PlanChecker::Play play_;  // the same
  std::vector<Member> members_;
  std::vector<Pod> pods_;                           // of those
  std::vector<std::vector<const Member*>> orders_;  // in which they are tried
  std::vector<int> all_;                            // nodes
  std::vector<Device> devices_;
};

}  // namespace

std::vector<Seating> AssembleGang(PlanChecker& checker, const Translation& translation,
                                  const StagedResult& around, int below, int gang,
                                  GpuStates& states, const std::function<bool()>& out_of_time) {
  return Assembler(checker, translation, around, below, gang, states, out_of_time).Run();
}

}  // namespace nos::planning
