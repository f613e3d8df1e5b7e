#include "planning/translation/pod_classes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "planning/translation/live_filters.h"
#include "scheduling/gang_domains.h"
#include "scheduling/plugins/inter_pod_affinity/terms.h"
#include "scheduling/pod_state.h"
#include "scheduling/several_shares.h"

namespace nos::planning {
namespace {

using cluster::Pod;

// Large enough for most keys.
constexpr size_t kKeySize = 256;

// The length comes first, so that concatenated keys are unambiguous.
void Append(std::string& key, std::string_view text) {
  key += std::to_string(text.size());
  key += ':';
  key += text;
}

void Append(std::string& key, const std::vector<cluster::SelectorRequirement>& requirements) {
  key += '[';
  for (const cluster::SelectorRequirement& r : requirements) {
    Append(key, r.key);
    Append(key, r.op);
    for (const std::string& value : r.values) Append(key, value);
    key += ';';
  }
}

void AppendAffinity(std::string& key, const cluster::NodeAffinity& affinity) {
  if (affinity.required) {
    key += 'R';
    for (const cluster::NodeSelectorTerm& term : *affinity.required) {
      Append(key, term.match_expressions);
      Append(key, term.match_fields);
    }
  }
}

void AppendRequests(std::string& key, const cluster::ResourceVector& requests) {
  for (const auto& [id, amount] : requests.entries()) {
    key.append(reinterpret_cast<const char*>(&id), sizeof id);
    key.append(reinterpret_cast<const char*>(&amount), sizeof amount);
  }
}

// The requests of nearly all pods depend on their containers only, so pods with an equal key share
// the sum.
std::string ContainerKey(const Pod& pod) {
  std::string key;
  key.reserve(kKeySize);
  const auto append = [&key](const cluster::ResourceList& list) {
    for (const auto& [name, quantity] : list) {
      Append(key, name);
      key.append(reinterpret_cast<const char*>(&quantity), sizeof quantity);
    }
    key += '|';
  };
  for (const std::vector<cluster::Container>* list : {&pod.containers, &pod.init_containers}) {
    key += '#';
    for (const cluster::Container& c : *list) {
      append(c.requests);
      append(c.limits);
      key += c.restart_always ? 's' : 'c';
    }
  }
  append(pod.requests);
  append(pod.limits);
  append(pod.overhead);
  return key;
}

class Grouper {
 public:
  Grouper(Pods pods, const scheduling::FrameworkChoice& frameworks, const LivePods& live,
          const PlanOptions& options)
      : pods_(pods), frameworks_(frameworks), live_(live), options_(options) {
    out_.group_of.assign(pods.size(), -1);
    out_.gang_of.assign(pods.size(), nullptr);
  }

  PodGroups Run() {
    FindGangs();
    for (size_t i = 0; i < pods_.size(); ++i) {
      const Gang* gang = out_.gang_of[i];
      if (gang != nullptr && IsHopeless(*gang)) continue;
      const bool served = !scheduling::AsksForSeveralShares(*pods_[i]);
      if (served && scheduling::IsSchedulable(*pods_[i])) Add(static_cast<int>(i));
    }
    for (PodGroup& group : groups_) SortMembers(group);
    for (size_t g = 0; g < out_.gangs.size(); ++g) SplitOffExtras(static_cast<int>(g));
    SetLevels();
    std::sort(groups_.begin(), groups_.end(), [this](const PodGroup& a, const PodGroup& b) {
      return a.level != b.level ? a.level < b.level : Before(a.members[0], b.members[0]);
    });
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const int i : groups_[g].members) out_.group_of[i] = static_cast<int>(g);
    }
    out_.all = std::move(groups_);
    return std::move(out_);
  }

 private:
  // Gangs that lack no pods are ignored.
  void FindGangs() {
    const auto more_urgent = [this](int a, int b) { return IsMoreUrgent(a, b); };
    std::vector<std::pair<int, const Gang*>> gangs;  // with the most urgent pod of each
    for (const Gang& gang : options_.gangs) {
      if (gang.Lacking() <= 0 && gang.problem.empty()) continue;
      for (const int i : gang.members) out_.gang_of[i] = &gang;
      if (IsHopeless(gang)) continue;
      gangs.emplace_back(*std::ranges::min_element(gang.members, more_urgent), &gang);
    }
    std::ranges::sort(gangs, more_urgent, &std::pair<int, const Gang*>::first);
    for (const auto& [urgent, gang] : gangs) {
      number_of_[gang] = static_cast<int>(out_.gangs.size());
      out_.gangs.push_back(gang);
      urgent_.push_back(pods_[urgent].get());
      minding_.push_back(MindingOf(*gang));
    }
  }

  // The gang's pods with constraints on the nodes of other members; one of each kind.
  std::vector<const Pod*> MindingOf(const Gang& gang) const {
    std::vector<const Pod*> minding;
    for (const int index : gang.members) {
      const Pod& pod = *pods_[index];
      const auto minds_alike = [&](const Pod* other) {
        return other->meta.ns == pod.meta.ns && other->spread.empty() == pod.spread.empty() &&
               other->pod_affinity.required == pod.pod_affinity.required;
      };
      if (!scheduling::MayFollow(pod) || std::ranges::any_of(minding, minds_alike)) continue;
      minding.push_back(&pod);
    }
    return minding;
  }

  // True if a member has constraints that depend on the pod's node.
  bool IsMinded(int gang, const Pod& pod) const {
    return gang >= 0 && std::ranges::any_of(minding_[gang], [&](const Pod* other) {
             const auto means = [&](const auto& term) {
               return scheduling::MaySelect(term, *other, pod);
             };
             return !other->spread.empty() ||
                    std::ranges::any_of(other->pod_affinity.required, means);
           });
  }

  bool IsMoreUrgent(int a, int b) const {
    const int32_t left = pods_[a]->priority, right = pods_[b]->priority;
    return left != right ? left > right : Before(a, b);
  }

  // The pods that the gang lacks rank like its most urgent pod; the others rank as single pods.
  void SplitOffExtras(int gang) {
    std::vector<size_t> needed;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].gang == gang) needed.push_back(g);
    }
    if (needed.empty()) return;
    const int lacking = out_.gangs[gang]->Lacking();
    std::vector<int>& members = groups_[needed[0]].members;
    if (needed.size() == 1 && static_cast<int>(members.size()) > lacking) {
      PodGroup extra = groups_[needed[0]];
      extra.members.erase(extra.members.begin(), extra.members.begin() + lacking);
      members.resize(lacking);
      extra.extra = true;
      extra.wait_rank = WaitRank(*pods_[extra.members[0]], options_);
      groups_.push_back(std::move(extra));
    }
    const bool first = std::ranges::all_of(needed, [&](size_t g) { return groups_[g].first; });
    const bool chosen = std::ranges::all_of(needed, [&](size_t g) { return groups_[g].chosen; });
    for (const size_t g : needed) {
      groups_[g].first = first;
      groups_[g].chosen = chosen;
      groups_[g].priority = urgent_[gang]->priority;
      groups_[g].wait_rank = WaitRank(*urgent_[gang], options_);
    }
  }

  const cluster::ResourceVector& RequestsFor(const Pod& pod) {
    const auto [it, fresh] = requests_.try_emplace(ContainerKey(pod));
    if (fresh) it->second = cluster::RequestsOf(pod);
    return it->second;
  }

  void Add(int i) {
    const Pod& pod = *pods_[i];
    const int gang = out_.gang_of[i] == nullptr ? -1 : number_of_.at(out_.gang_of[i]);
    const int wait_rank = gang < 0 ? WaitRank(pod, options_) : 0;
    const cluster::ResourceVector& requests = RequestsFor(pod);
    std::string constraints = ConstraintKey(pod);
    const size_t framework = frameworks_.IndexFor(pod);
    constraints.append(reinterpret_cast<const char*>(&framework), sizeof framework);
    const bool live = live_.Has(pod) || IsMinded(gang, pod);
    if (live) Append(constraints, std::to_string(i));
    std::string key = constraints;
    key += '\n';
    key.append(reinterpret_cast<const char*>(&pod.priority), sizeof pod.priority);
    key.append(reinterpret_cast<const char*>(&wait_rank), sizeof wait_rank);
    key.append(reinterpret_cast<const char*>(&gang), sizeof gang);
    const bool first = options_.first.contains(pod.Key());
    const bool chosen = !pod.nominated_node.empty();
    key += first ? '1' : '0';
    key += chosen ? '1' : '0';
    AppendRequests(key, requests);
    const auto [it, fresh] = index_.try_emplace(std::move(key), static_cast<int>(groups_.size()));
    if (fresh) {
      groups_.push_back({std::move(constraints), requests, pod.priority, wait_rank, 0, {}, gang});
      groups_.back().live = live;
      groups_.back().first = first;
      groups_.back().chosen = chosen;
    }
    groups_[it->second].members.push_back(i);
  }

  // Longest waiting first; pods without a creation time last.
  bool Before(int a, int b) const {
    const cluster::ObjectMeta &left = pods_[a]->meta, &right = pods_[b]->meta;
    const auto unknown = [](const cluster::ObjectMeta& m) { return m.created == Time{}; };
    return std::tuple(unknown(left), left.created, std::cref(left.ns).get(),
                      std::cref(left.name).get(),
                      a) < std::tuple(unknown(right), right.created, std::cref(right.ns).get(),
                                      std::cref(right.name).get(), b);
  }
  void SortMembers(PodGroup& group) const {
    std::sort(group.members.begin(), group.members.end(),
              [this](int a, int b) { return Before(a, b); });
  }

  void SetLevels() {
    const auto rank = [](const PodGroup& g) {
      return std::tuple(!g.first, -int64_t{g.priority}, !g.chosen, -g.wait_rank);
    };
    std::map<std::tuple<bool, int64_t, bool, int>, int> levels;
    for (const PodGroup& g : groups_) levels[rank(g)] = 0;
    int next = 0;
    for (auto& [key, level] : levels) level = next++;
    for (PodGroup& g : groups_) g.level = levels[rank(g)];
  }

  const Pods pods_;
  const scheduling::FrameworkChoice& frameworks_;
  const LivePods& live_;
  const PlanOptions& options_;
  PodGroups out_;
  std::vector<PodGroup> groups_;
  std::vector<const Pod*> urgent_;                // by gang
  std::vector<std::vector<const Pod*>> minding_;  // by gang: one pod of each kind
  std::map<const Gang*, int> number_of_;          // index into out_.gangs
  std::unordered_map<std::string, int> index_;
  std::unordered_map<std::string, cluster::ResourceVector> requests_;
};

}  // namespace

std::string ConstraintKey(const Pod& pod) {
  std::string key;
  key.reserve(kKeySize);
  Append(key, pod.node_name);
  for (const auto& [label, value] : pod.node_selector) {
    Append(key, label);
    Append(key, value);
  }
  key += '\n';
  if (pod.node_affinity) AppendAffinity(key, *pod.node_affinity);
  key += '\n';
  for (const cluster::Toleration& t : pod.tolerations) {
    for (const std::string* part : {&t.key, &t.op, &t.value, &t.effect}) Append(key, *part);
  }
  return key;
}

int WaitRank(const Pod& pod, const PlanOptions& options) {
  if (pod.meta.created == Time{} || options.hold_after <= Duration::zero()) return 0;
  int wait_rank = 0;
  Duration wait = options.now - pod.meta.created;
  for (; wait >= options.hold_after; wait /= 2) ++wait_rank;
  return wait_rank;
}

bool IsHopeless(const Gang& gang) {
  return !gang.problem.empty() || gang.Lacking() > static_cast<int>(gang.members.size());
}

PodGroups GroupPods(Pods pods, const scheduling::FrameworkChoice& frameworks, const LivePods& live,
                    const PlanOptions& options) {
  return Grouper(pods, frameworks, live, options).Run();
}

}  // namespace nos::planning
