#include "sim/world/run/infrastructure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

constexpr int kLateness = 3;        // factor
constexpr double kMaxRefusal = 90;  // seconds

constexpr std::array<std::pair<std::string_view, PoolFault>, 7> kFaultNames = {
    {{"nothing", PoolFault::kNone},
     {"late", PoolFault::kLate},
     {"never", PoolFault::kNever},
     {"partly", PoolFault::kPartly},
     {"wrong", PoolFault::kWrong},
     {"other", PoolFault::kOther},
     {"refused", PoolFault::kRefused}}};

std::string SetKey(std::string_view pool) { return kube::KeyOf(kInfraNamespace, pool); }

bool HasAnnotation(const Result<Json>& object) {
  return object.ok() &&
         Find(*object, "metadata", "annotations", cluster::kDeleteMachine) != nullptr;
}

}  // namespace

std::optional<PoolFault> FindPoolFault(std::string_view name) {
  const auto found =
      std::ranges::find(kFaultNames, name, &std::pair<std::string_view, PoolFault>::first);
  return found == kFaultNames.end() ? std::nullopt : std::optional(found->second);
}

std::string PoolFaultNames() {
  std::string names;
  for (const auto& [name, fault] : kFaultNames) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  return names;
}

int Infrastructure::Pool::There() const {
  return static_cast<int>(std::ranges::count_if(
      members, [](const Member& member) { return member.joined.has_value(); }));
}

Status Infrastructure::ReadWanted(JsonSource json, Wanted& to) {
  NOS_ASSIGN(const Json object, TreeOf(json));
  to.meta.ns = FindString(object, "metadata", "namespace");
  to.meta.name = FindString(object, "metadata", "name");
  to.meta.resource_version = FindString(object, "metadata", "resourceVersion");
  const Json* replicas = Find(object, "spec", "replicas");
  if (replicas != nullptr && replicas->is_int64()) {
    to.replicas = static_cast<int>(replicas->get_int64());
  }
  return Status::Ok();
}

Infrastructure::Infrastructure(const Environment& env, MoveChecker& checker, Hooks hooks)
    : env_(env),
      checker_(checker),
      hooks_(std::move(hooks)),
      client_(env_.api),
      sets_(kMachineSets, ReadWanted) {}

Status Infrastructure::Add(const PoolSpec& spec) {
  if (pools_.contains(spec.name)) {
    return {Code::kAlreadyExists, fmt::format("pool '{}' is there already", spec.name)};
  }
  NOS_RETURN_IF_ERROR(DefinePools(client_));
  NOS_RETURN_IF_ERROR(
      client_.Create(kMachineSets, kInfraNamespace, MachineSetObject(spec)).status());
  NOS_RETURN_IF_ERROR(client_.Create(kPoolResource, "", NodePoolObject(spec)).status());
  Pool& pool = pools_[spec.name];
  pool.spec = spec;
  pool.spec.node.labels[std::string(kPoolLabel)] = spec.name;
  pool.wanted = spec.nodes;
  for (int i = 0; i < spec.nodes; ++i) {
    NOS_RETURN_IF_ERROR(Join(pool, Enter(pool)));
  }
  ScheduleRefusals(spec.name);
  return Status::Ok();
}

Status Infrastructure::SetFault(std::string_view name, PoolFault fault) {
  const auto pool = pools_.find(name);
  if (pool == pools_.end()) return NotFound(fmt::format("there is no pool {}", name));
  pool->second.fault = fault;
  return Status::Ok();
}

void Infrastructure::ScheduleRefusals(const std::string& name) {
  const auto when = env_.faults.Next(env_.faults.rates().scaling_refused_per_hour, env_.random);
  if (!when) return;
  env_.queue.At(*when, [this, name] {
    const Time end = env_.clock.Now() + FromSeconds(env_.random.Uniform() * kMaxRefusal);
    pools_[name].refused_until = std::min(end, env_.faults.until());
    Note(fmt::format("fault: {} cannot be scaled for a while", name));
    ScheduleRefusals(name);
  });
}

bool Infrastructure::Refuses(std::string_view path) const {
  if (!path.ends_with("/scale")) return false;
  return std::ranges::any_of(pools_, [&](const auto& entry) {
    const Pool& pool = entry.second;
    const bool refuses = pool.fault == PoolFault::kRefused || env_.clock.Now() < pool.refused_until;
    return refuses && path == kube::PathOf(kMachineSets, kInfraNamespace, entry.first, "scale");
  });
}

std::optional<kube::ApiResponse> Infrastructure::Refuse(const kube::ApiRequest& request) const {
  if (!Refuses(request.path)) return std::nullopt;
  return kube::ApiResponse{503, JsonObject{{"kind", "Status"},
                                           {"apiVersion", "v1"},
                                           {"status", "Failure"},
                                           {"message", "it cannot be scaled now (injected)"},
                                           {"reason", "ServiceUnavailable"},
                                           {"code", 503}}};
}

void Infrastructure::SeeLost(const std::string& node) {
  for (auto& [name, pool] : pools_) {
    for (size_t i = 0; i < pool.members.size(); ++i) {
      if (pool.members[i].name == node && pool.members[i].joined) return Forget(pool, i);
    }
  }
}

std::vector<PoolState> Infrastructure::States() const {
  std::vector<PoolState> states;
  for (const auto& [name, pool] : pools_) {
    PoolState state{.name = name,
                    .min = pool.spec.min,
                    .max = pool.spec.max,
                    .wanted = pool.wanted,
                    .made = pool.made,
                    .removed = pool.removed};
    double seconds = pool.node_seconds;
    for (const Member& member : pool.members) {
      ++(member.joined ? state.nodes : state.coming);
      if (member.joined) seconds += ToSeconds(env_.clock.Now() - *member.joined);
    }
    state.node_hours = seconds / 3600;
    state.cost = state.node_hours * static_cast<double>(pool.spec.price.MilliValue()) / 1000;
    states.push_back(std::move(state));
  }
  return states;
}

bool Infrastructure::Step() {
  if (pools_.empty()) return false;
  sets_.Pump(client_, env_.clock.Now());
  return std::ranges::any_of(pools_, [this](auto& entry) {
    Pool& pool = entry.second;
    return Follow(pool) || JoinDue(pool) || ReportCount(pool);
  });
}

std::optional<Time> Infrastructure::NextWake() const {
  std::optional<Time> wake;
  const auto consider = [&](Time when) { wake = std::min(wake.value_or(when), when); };
  for (const auto& [name, pool] : pools_) {
    for (const Member& member : pool.members) {
      if (member.joined) continue;
      if (member.due) consider(*member.due);
      if (!member.due && env_.clock.Now() < env_.faults.until()) consider(env_.faults.until());
    }
  }
  return wake;
}

// Adds or removes one node at a time.
bool Infrastructure::Follow(Pool& pool) {
  const auto set = sets_.Get(SetKey(pool.spec.name));
  if (set == nullptr) return false;
  const auto replicas = set->replicas;
  if (!replicas) return false;
  if (*replicas != pool.wanted) {
    checker_.SeeScale(pool.Bounds(), pool.wanted, *replicas);
    Note(fmt::format("{}: {} nodes are wanted, {} were", pool.spec.name, *replicas, pool.wanted));
    pool.wanted = *replicas;
    return true;
  }
  const int members = static_cast<int>(pool.members.size());
  if (members == pool.wanted) return false;
  if (members < pool.wanted) {
    Ask(pool);
  } else {
    RemoveOne(pool);
  }
  return true;
}

// Adds a member under the next name, with a Machine if its nodes have them.
Infrastructure::Member& Infrastructure::Enter(Pool& pool) {
  Member& member = pool.members.emplace_back();
  member.name = fmt::format("{}-{}", pool.spec.name, ++pool.asked);
  if (pool.spec.machines) {  // an error means that it exists
    (void)client_.Create(kMachines, kInfraNamespace, MachineObject(member.name));
  }
  return member;
}

void Infrastructure::Ask(Pool& pool) {
  const FaultRates& rates = env_.faults.rates();
  const bool late = pool.fault == PoolFault::kLate || env_.faults.Strike(rates.node_late);
  const bool half = pool.fault == PoolFault::kPartly && pool.members.size() % 2 == 1;
  const bool never =
      pool.fault == PoolFault::kNever || half || env_.faults.Strike(rates.node_never);
  Member& member = Enter(pool);
  if (!never) member.due = env_.clock.Now() + pool.spec.start * (late ? kLateness : 1);
  member.wrong = pool.fault == PoolFault::kWrong || env_.faults.Strike(rates.node_wrong);
  Note(fmt::format("{} is asked for{}{}{}", member.name, late ? ", fault: late" : "",
                   never ? ", fault: it does not come" : "", member.wrong ? ", fault: wrong" : ""));
}

// True once nodes held back by a fault may join.
bool Infrastructure::MayCome(const Pool& pool) const {
  return pool.fault != PoolFault::kNever && pool.fault != PoolFault::kPartly &&
         env_.clock.Now() >= env_.faults.until();
}

bool Infrastructure::JoinDue(Pool& pool) {
  for (Member& member : pool.members) {
    if (member.joined) continue;
    if (!member.due && MayCome(pool)) {
      member.due = env_.clock.Now() + pool.spec.start;
      return true;
    }
    if (!member.due || env_.clock.Now() < *member.due) continue;
    const Status joined = Join(pool, member);
    Note(fmt::format("{} joins: {}", member.name, joined.ToString()));
    ++pool.made;
    return true;
  }
  return false;
}

Status Infrastructure::Join(const Pool& pool, Member& member) {
  NodeSpec node = pool.spec.node;
  node.name = member.name;
  if (member.wrong && !node.gpus.empty()) node.gpus.pop_back();
  if (pool.spec.machines) {
    node.annotations[std::string(kMachineName)] = member.name;
    node.annotations[std::string(kMachineNamespace)] = kInfraNamespace;
  }
  member.joined = env_.clock.Now();
  return hooks_.join(node);
}

bool Infrastructure::ReportCount(Pool& pool) {
  if (pool.reported == pool.There()) return false;
  pool.reported = pool.There();
  const Json patch = JsonObject{{"status", JsonObject{{"replicas", pool.reported}}}};
  // Errors are ignored: the set may be deleted.
  (void)client_.Patch(kMachineSets, kInfraNamespace, pool.spec.name, kube::PatchType::kMerge, patch,
                      "status");
  return true;
}

bool Infrastructure::IsNamed(const Pool& pool, const Member& member) {
  if (!member.joined) return false;
  return HasAnnotation(client_.Get(kube::kNodes, "", member.name)) ||
         (pool.spec.machines &&
          HasAnnotation(client_.Get(kMachines, kInfraNamespace, member.name)));
}

// The newest member for which `holds` is true; members that have not joined count as newest. The
// size of the list if there is none.
template <typename Holds>
size_t Infrastructure::Newest(const Pool& pool, const Holds& holds) const {
  const auto age = [](const Member& member) { return member.joined.value_or(Time::max()); };
  size_t newest = pool.members.size();
  for (size_t i = 0; i < pool.members.size(); ++i) {
    if (!holds(pool.members[i])) continue;
    const bool newer =
        newest == pool.members.size() || age(pool.members[i]) >= age(pool.members[newest]);
    if (newer) newest = i;
  }
  return newest;
}

void Infrastructure::RemoveOne(Pool& pool) {
  // 1. Choose the marked node, otherwise the newest. A fault chooses another joined node instead.
  const size_t none = pool.members.size();
  const auto named = [&](const Member& member) { return IsNamed(pool, member); };
  size_t goes = Newest(pool, named);
  bool fault = false;
  if (goes == none) {
    goes = Newest(pool, [](const Member&) { return true; });
  } else {
    const size_t other =
        Newest(pool, [&](const Member& member) { return member.joined && !named(member); });
    fault = other != none &&
            (pool.fault == PoolFault::kOther || env_.faults.Strike(env_.faults.rates().node_other));
    if (fault) goes = other;
  }
  // 2. Check the removal, unless a fault chose the node or its join may be unknown.
  const Member gone = pool.members[goes];
  Note(fmt::format("{} is taken away{}", gone.name, fault ? ", fault: another was named" : ""));
  // A node that has just joined may have been given up as late before that.
  const bool known = gone.joined && (env_.clock.Now() - *gone.joined > kFaultsLinger);
  if (!fault && known) {
    // Counts nodes that have not joined yet: the component that marked the node could not know that
    // they would not join, or that another node would be lost before.
    const int left = static_cast<int>(pool.members.size()) - 1;
    checker_.SeeRemoval(gone.name, pool.Bounds(), left, env_.clock.Now());
  }
  // 3. Remove the node. Its pods are lost with it, so the checker had to look before.
  if (pool.spec.machines) (void)client_.Delete(kMachines, kInfraNamespace, gone.name);
  Forget(pool, goes);
  if (gone.joined) hooks_.leave(gone.name);
}

void Infrastructure::Forget(Pool& pool, size_t member) {
  const Member& gone = pool.members[member];
  if (gone.joined) {
    pool.node_seconds += ToSeconds(env_.clock.Now() - *gone.joined);
    ++pool.removed;
  }
  pool.members.erase(pool.members.begin() + static_cast<std::ptrdiff_t>(member));
}

}  // namespace nos::sim
