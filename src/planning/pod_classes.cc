#include "planning/pod_classes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "planning/live_filters.h"
#include "scheduling/pod_state.h"

namespace nos::planning {
namespace {

using cluster::Pod;

// Enough for most keys.
constexpr size_t kKeySize = 256;

// Length first, so that no text can pass for another one.
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

// Containers alone decide the requests of nearly all pods: equal ones need not be added up again.
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
          const PlanOptions& options, std::vector<int>& group_of)
      : pods_(pods), frameworks_(frameworks), live_(live), options_(options), group_of_(group_of) {
    group_of_.assign(pods.size(), -1);
  }

  std::vector<PodGroup> Run() {
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (scheduling::IsSchedulable(*pods_[i])) Add(static_cast<int>(i));
    }
    for (PodGroup& group : groups_) SortMembers(group);
    SetLevels();
    std::sort(groups_.begin(), groups_.end(), [this](const PodGroup& a, const PodGroup& b) {
      return a.level != b.level ? a.level < b.level : Before(a.members[0], b.members[0]);
    });
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const int i : groups_[g].members) group_of_[i] = static_cast<int>(g);
    }
    return std::move(groups_);
  }

 private:
  const cluster::ResourceVector& RequestsFor(const Pod& pod) {
    const auto [it, fresh] = requests_.try_emplace(ContainerKey(pod));
    if (fresh) it->second = cluster::RequestsOf(pod);
    return it->second;
  }

  void Add(int i) {
    const Pod& pod = *pods_[i];
    const int claim = Claim(pod, options_);
    const cluster::ResourceVector& requests = RequestsFor(pod);
    std::string constraints = ConstraintKey(pod);
    const size_t framework = frameworks_.IndexFor(pod);
    constraints.append(reinterpret_cast<const char*>(&framework), sizeof framework);
    if (live_.Has(pod)) Append(constraints, std::to_string(i));
    std::string key = constraints;
    key += '\n';
    key.append(reinterpret_cast<const char*>(&pod.priority), sizeof pod.priority);
    key.append(reinterpret_cast<const char*>(&claim), sizeof claim);
    AppendRequests(key, requests);
    const auto [it, fresh] = index_.try_emplace(std::move(key), static_cast<int>(groups_.size()));
    if (fresh) {
      groups_.push_back({std::move(constraints), requests, pod.priority, claim, 0, {}});
    }
    groups_[it->second].members.push_back(i);
  }

  // Longest waiting first; pods without a time of creation last.
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
    std::map<std::pair<int64_t, int>, int> levels;  // highest priority and claim first
    for (const PodGroup& g : groups_) levels[{-int64_t{g.priority}, -g.claim}] = 0;
    int next = 0;
    for (auto& [key, level] : levels) level = next++;
    for (PodGroup& g : groups_) g.level = levels[{-int64_t{g.priority}, -g.claim}];
  }

  const Pods pods_;
  const scheduling::FrameworkChoice& frameworks_;
  const LivePods& live_;
  const PlanOptions& options_;
  std::vector<int>& group_of_;
  std::vector<PodGroup> groups_;
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

int Claim(const Pod& pod, const PlanOptions& options) {
  if (pod.meta.created == Time{} || options.starvation_after <= Duration::zero()) return 0;
  int claim = 0;
  Duration wait = options.now - pod.meta.created;
  for (; wait >= options.starvation_after; wait /= 2) ++claim;
  return claim;
}

std::vector<PodGroup> GroupPods(Pods pods, const scheduling::FrameworkChoice& frameworks,
                                const LivePods& live, const PlanOptions& options,
                                std::vector<int>& group_of) {
  return Grouper(pods, frameworks, live, options, group_of).Run();
}

}  // namespace nos::planning
