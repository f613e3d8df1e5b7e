#include "dra/result/allocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/uuid.h"

namespace nos::dra {
namespace {

using Terms = std::vector<cluster::NodeSelectorTerm>;
using Requirements = std::vector<cluster::SelectorRequirement>;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Collects the result of one claim.
class ClaimResult {
 public:
  ClaimResult(const NodeView& view, const PreparedClaim& claim, const Features& features)
      : view_(view), claim_(claim), features_(features) {}

  void Add(const Pick& pick) {
    chosen_[pick.request->parent] = pick.request;
    picks_.push_back(&pick);
    result_.devices.push_back(DeviceOf(pick));
  }

  Allocation Finish() {
    AddClassConfig();
    AddClaimConfig();
    for (AllocatedConfig& config : result_.config) {
      const bool all = std::all_of(
          claim_.requests.begin(), claim_.requests.end(),
          [&](const auto& alternatives) { return Names(config.requests, alternatives); });
      if (all) config.requests.clear();
    }
    AddNodeSelector();
    return std::move(result_);
  }

 private:
  const PoolDevice& Find(const Pick& pick) const { return view_.Find(view_.devices[pick.device]); }

  // The alternative that was allocated. A request for no devices has its first.
  const PreparedRequest* ChosenOf(const std::vector<PreparedRequest>& alternatives) const {
    const auto found = chosen_.find(alternatives.front().parent);
    return found == chosen_.end() ? &alternatives.front() : found->second;
  }

  // True if the list names the request or its chosen alternative.
  bool Names(const std::vector<std::string>& requests,
             const std::vector<PreparedRequest>& alternatives) const {
    const PreparedRequest* chosen = ChosenOf(alternatives);
    return Contains(requests, chosen->parent) || Contains(requests, chosen->name);
  }

  AllocatedDevice DeviceOf(const Pick& pick) const {
    const PoolDevice& device = Find(pick);
    AllocatedDevice result;
    result.request = pick.request->name;
    result.driver = device.slice->driver;
    result.pool = device.slice->pool;
    result.device = device.device->name;
    if (pick.request->admin) result.admin_access = true;
    result.tolerations = pick.request->spec->tolerations;
    if (features_.binding_conditions) {
      result.binding_conditions = device.device->binding_conditions;
      result.binding_failure_conditions = device.device->binding_failure_conditions;
    }
    result.skip_node_operations = device.slice->skip_node_operations;
    if (pick.share == nullptr) return result;
    result.consumed_capacity = *pick.share;
    result.share_id = ShareIdOf(*claim_.claim, result);
    return result;
  }

  // Each class once, for all requests that use it.
  void AddClassConfig() {
    std::map<std::string, std::pair<size_t, size_t>> added;  // by class: [first, last)
    for (const auto& alternatives : claim_.requests) {
      const PreparedRequest* chosen = ChosenOf(alternatives);
      const DeviceClass& device_class = *chosen->device_class;
      const size_t first = result_.config.size();
      const auto [range, is_new] =
          added.try_emplace(device_class.name, first, first + device_class.config.size());
      if (is_new) {
        for (const auto& opaque : device_class.config) {
          result_.config.push_back({"FromClass", {}, opaque});
        }
      }
      for (size_t i = range->second.first; i < range->second.second; ++i) {
        result_.config[i].requests.push_back(chosen->name);
      }
    }
  }

  void AddClaimConfig() {
    for (const ClaimConfig& config : claim_.claim->config) {
      const bool applies =
          config.requests.empty() || std::any_of(claim_.requests.begin(), claim_.requests.end(),
                                                 [&](const auto& alternatives) {
                                                   return Names(config.requests, alternatives);
                                                 });
      if (applies) result_.config.push_back({"FromClaim", config.requests, config.opaque});
    }
  }

  void AddNodeSelector() {
    cluster::NodeSelectorTerm term;
    for (const Pick* pick : picks_) {
      const PoolDevice& device = Find(*pick);
      const bool per_device = device.slice->nodes_per_device.value_or(false);
      static const NodeSelection none;
      const NodeSelection& nodes =
          !per_device ? device.slice->nodes
                      : (device.device->nodes == nullptr ? none : *device.device->nodes);
      if (!nodes.node_name.empty() || device.device->binds_to_node) {
        result_.node_selector = Terms{{{}, {{"metadata.name", "In", {view_.node}}}}};
        return;
      }
      if (!nodes.selector || nodes.selector->empty()) continue;
      AddNew(nodes.selector->front().match_fields, term.match_fields);
      AddNew(nodes.selector->front().match_expressions, term.match_expressions);
    }
    if (term.match_fields.empty() && term.match_expressions.empty()) return;
    result_.node_selector = Terms{std::move(term)};
  }

  static void AddNew(const Requirements& from, Requirements& to) {
    const auto same = [](const cluster::SelectorRequirement& a,
                         const cluster::SelectorRequirement& b) {
      return a.key == b.key && a.op == b.op &&
             std::set<std::string>(a.values.begin(), a.values.end()) ==
                 std::set<std::string>(b.values.begin(), b.values.end());
    };
    for (const cluster::SelectorRequirement& requirement : from) {
      const bool known = std::any_of(to.begin(), to.end(),
                                     [&](const auto& other) { return same(other, requirement); });
      if (!known) to.push_back(requirement);
    }
  }

  const NodeView& view_;
  const PreparedClaim& claim_;
  const Features& features_;
  std::map<std::string, const PreparedRequest*> chosen_;  // by request
  std::vector<const Pick*> picks_;
  Allocation result_;
};

}  // namespace

std::string ShareIdOf(const ResourceClaim& claim, const AllocatedDevice& device) {
  return NameBasedUuid(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", claim.uid, claim.Key(), device.request,
                                   device.driver.str(), device.pool.str(), device.device.str()));
}

std::vector<Allocation> ResultOf(const NodeView& view, const std::vector<Pick>& picks,
                                 const std::vector<PreparedClaim>& claims,
                                 const Features& features) {
  std::vector<Allocation> results;
  size_t next = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    ClaimResult result(view, claims[i], features);
    for (; next < picks.size() && picks[next].claim == i; ++next) result.Add(picks[next]);
    results.push_back(result.Finish());
  }
  return results;
}

}  // namespace nos::dra
