#include "scheduling/plugins/dynamic_resources/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "cluster/gangs.h"
#include "dra/cel_expressions.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "scheduling/plugins/dynamic_resources/assumed_claims.h"
#include "scheduling/plugins/dynamic_resources/search_budget.h"
#include "scheduling/plugins/dynamic_resources/wanted_claims.h"

namespace nos::scheduling {
namespace {

using cluster::Pod;
using dra::AllocationOutcome;
using dra::DeviceIndex;

// Devices that could not be prepared are tried last for so long.
constexpr Duration kSuspected = std::chrono::minutes(10);

// An index of a snapshot that has none.
struct OwnIndex {
  explicit OwnIndex(const cluster::ClusterSnapshot& snapshot)
      : base(snapshot),
        index(dra::Features::All(), std::make_shared<const dra::CelExpressions>(),
              base.catalogue()) {
    index.SetBase(&base);
    index.Reset(base.context());
  }
  cluster::ClusterSnapshot base;
  DeviceIndex index;
};

// The claims to be allocated on a node.
struct OpenClaims {
  dra::PreparedClaims prepared;
  dra::ExtendedClaim extended;  // the last of them, if it has a claim
};

// Kept in CycleState.
struct Wanted {
  WantedClaims claims;
  std::shared_ptr<const OpenClaims> open;  // those of the spec; null: nothing is to be allocated
  cluster::Table<dra::DeviceClass> classes;
  std::shared_ptr<DeviceIndex> index;
  std::shared_ptr<SearchBudget> budget = std::make_shared<SearchBudget>();
  // How good the devices are that a node has for the claims.
  struct Quality {
    int64_t score = 0;
    uint64_t order = 0;  // see Order
  };
  struct OnNode {
    std::optional<uint64_t> version;  // of the index, when the filter found the devices
    Quality found;
    uint64_t order = 0;  // when the node was scored last
  };
  std::shared_ptr<std::unordered_map<std::string, OnNode>> by_node =
      std::make_shared<std::unordered_map<std::string, OnNode>>();
  // With claims for extended resources, by which of `claims.extended` a node does not offer.
  using OpenByMissing = std::map<std::vector<bool>, std::shared_ptr<const OpenClaims>>;
  std::shared_ptr<OpenByMissing> open_by_missing = std::make_shared<OpenByMissing>();
  std::set<dra::DeviceId> suspects = {};  // to be tried last

  bool MayAllocate() const { return open != nullptr || !claims.extended.empty(); }
  // The claims to be allocated on this node; null: none.
  std::shared_ptr<const OpenClaims> OpenOn(const Pod& pod, const cluster::NodeInfo& node) const {
    if (claims.extended.empty()) return open;
    std::vector<bool> missing;
    for (const std::string& resource : claims.extended) {
      missing.push_back(!dra::Offers(node, resource));
    }
    const auto [known, added] = open_by_missing->try_emplace(std::move(missing), open);
    if (added) {
      dra::ExtendedClaim extended = index->extended().ClaimFor(pod, node);
      if (extended.claim != nullptr) known->second = Prepare(std::move(extended));
    }
    return known->second;
  }
  std::shared_ptr<const OpenClaims> Prepare(dra::ExtendedClaim extended) const {
    std::vector<WantedClaims::Claim> all = claims.open;
    if (extended.claim != nullptr) all.push_back(extended.claim);
    return std::make_shared<const OpenClaims>(OpenClaims{
        dra::PreparedClaims(std::move(all), FindClass(), index->features()), std::move(extended)});
  }
  // The devices that the open claims would get. REQUIRES: Fit has found some.
  AllocationOutcome Best(const OpenClaims& on_node, const cluster::NodeInfo& node,
                         dra::AllocationOptions options = {}) const {
    const dra::SuspectsLast last(index->ranking(), suspects);
    options.ranking = &index->ranking();
    if (!suspects.empty()) options.ranking = &last;
    options.first_alternative = index->first_alternative();
    return index->Allocate(on_node.prepared, node, FindClass(), options);
  }
  // Number of devices among them that are tried last.
  int64_t SuspectsIn(const AllocationOutcome& outcome) const {
    int64_t count = 0;
    for (const dra::Allocation& allocation : outcome.allocations) {
      count += std::ranges::count_if(allocation.devices, [&](const auto& device) {
        return suspects.contains(dra::DeviceId::Of(device));
      });
    }
    return count;
  }
  Quality QualityOf(const AllocationOutcome& outcome) const {
    if (outcome.kind != AllocationOutcome::Kind::kAllocated) return {kUnscored, 0};
    return {-kMaxScore * (outcome.alternatives + SuspectsIn(outcome)) -
                std::llround(outcome.loss.gpus * kMaxScore),
            (static_cast<uint64_t>(outcome.loss.free_slots) << 32 | outcome.loss.tie) + 1};
  }
  // Devices that the open claims could get, within the budget of all nodes.
  AllocationOutcome Fit(const OpenClaims& on_node, const cluster::NodeInfo& node) const {
    dra::AllocationOptions options;
    options.max_steps = budget->Next();
    AllocationOutcome outcome = Best(on_node, node, options);
    budget->Note(outcome);
    OnNode& known = (*by_node)[node.node->meta.name];
    known.version.reset();
    // Otherwise the score's longer search may find better ones.
    if (outcome.ranked) {
      known.version = index->version();
      known.found = QualityOf(outcome);
    }
    return outcome;
  }
  Quality Score(const OpenClaims& on_node, const cluster::NodeInfo& node) const {
    OnNode& known = (*by_node)[node.node->meta.name];
    const bool current = known.version == index->version();
    const Quality quality = current ? known.found : QualityOf(Best(on_node, node));
    known.order = quality.order;
    return quality;
  }
  dra::FindClass FindClass() const {
    return [this](const std::string& name) { return classes.Share(name); };
  }
};

std::shared_ptr<DeviceIndex> IndexOf(const cluster::ClusterSnapshot& snapshot) {
  if (snapshot.context().devices != nullptr) return snapshot.context().devices;
  const auto own = std::make_shared<OwnIndex>(snapshot);
  return {own, &own->index};
}

Verdict NotOnNode() {
  return Verdict::Unresolvable(codes::kDevicesElsewhere, "resourceclaim not available on the node");
}

// `open`: the claims to be allocated on the node. The kubelet would wait for the claim that the
// status names, and the name cannot be removed.
Verdict VerdictOnNamedClaim(const Pod& pod, const OpenClaims* open) {
  if (pod.extended_claim.empty() || (open != nullptr && open->extended.claim != nullptr)) {
    return Verdict::Fits();
  }
  return Verdict::Unresolvable(
      codes::kDevicesElsewhere,
      "the pod's status names a claim for extended resources, which the node offers itself");
}

Verdict VerdictOf(const dra::AllocationFault& fault) {
  return Verdict::Unresolvable(codes::kDevicesRefused, fault.message);
}

Verdict VerdictOf(const AllocationOutcome& outcome) {
  switch (outcome.kind) {
    case AllocationOutcome::Kind::kAllocated:
      return Verdict::Fits();
    case AllocationOutcome::Kind::kDoesNotFit:
      return Verdict::Unschedulable(codes::kInsufficientDevices, "cannot allocate all claims");
    case AllocationOutcome::Kind::kStepsExhausted:
      return Verdict::Unschedulable(
          codes::kInsufficientDevices,
          "cannot allocate all claims: the search for devices is too long");
    case AllocationOutcome::Kind::kRefused:
      return VerdictOf(outcome.fault);
  }
  return Verdict::Fits();
}

// Pods of a gang are bound together, so they cannot wait until the first of them is bound.
bool IsShared(const DeviceIndex::Assumption& assumed, const Pod& pod) {
  return !assumed.gang.empty() && assumed.gang == cluster::GangOf(pod);
}

// True if the pod becomes one of several users of a stored allocation together with its gang: their
// writes must not exclude each other.
bool JoinsUsers(const dra::ResourceClaim& claim, const Pod& pod) {
  return !claim.reserved_for.empty() && !dra::IsReservedFor(claim, pod) &&
         !cluster::GangOf(pod).empty();
}

// Moves open claims whose allocation is assumed for this pod or its gang, or in doubt, to those
// that are allocated. An allocation that is assumed for another pod counts once it is stored.
std::optional<Verdict> AdoptAssumed(const Pod& pod, const DeviceIndex& index,
                                    WantedClaims& claims) {
  std::optional<Verdict> verdict;
  std::erase_if(claims.open, [&](const auto& claim) {
    const DeviceIndex::Assumption* assumed = index.FindAssumed(claim->Key());
    if (assumed == nullptr) return false;
    const bool foreign = !assumed->doubtful && assumed->pod_uid != pod.meta.uid;
    if (foreign && !IsShared(*assumed, pod)) {
      verdict = Verdict::Unresolvable(
          codes::kResourceClaimInUse,
          fmt::format("resourceclaim \"{}\" is being allocated for another pod", claim->Key()));
      return false;
    }
    if (foreign) claims.followed.insert(claim->Key());
    auto adopted = std::make_shared<dra::ResourceClaim>(*claim);
    adopted->allocation = assumed->allocation;
    claims.allocated.push_back(std::move(adopted));
    return true;
  });
  return verdict;
}

// The devices that could not be prepared for the pod or its claims.
std::set<dra::DeviceId> SuspectsOf(const Pod& pod, const DeviceIndex& index) {
  if (index.suspects().empty()) return {};
  std::vector<std::string> owners{pod.meta.uid};
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    if (const auto& claim = index.FindClaim(key)) owners.push_back(claim->uid);
  }
  return index.suspects().Of(owners);
}

// After PreBind has failed: keeps the devices from being chosen at once again. A claim for extended
// resources is made anew, so the pod stands for it.
void NoteUnprepared(const AssumedClaims& assumed, const Pod& pod, bool timed_out,
                    const cluster::ClusterContext& context, Time now) {
  for (const AssumedClaims::Change& change : assumed.changes) {
    const dra::ResourceClaim* claim = context.device_claims.Find(change.claim->Key());
    if (claim == nullptr) continue;
    const auto devices = UnpreparedOf(*claim, change.allocation, timed_out);
    for (const dra::DeviceId& device : devices) {
      context.devices->suspects().Add(change.creates() ? pod.meta.uid : claim->uid, device,
                                      now + kSuspected);
    }
    if (timed_out && !devices.empty()) context.devices->SetExpired(claim->Key());
  }
}

// The claims that the pod needs, or why no node can serve them.
std::variant<Wanted, Verdict> Prepare(const Pod& pod, const cluster::ClusterSnapshot& snapshot) {
  const cluster::ClusterContext& context = snapshot.context();
  auto found = FindWantedClaims(pod, context);
  if (auto* verdict = std::get_if<Verdict>(&found)) return std::move(*verdict);
  Wanted wanted{std::get<WantedClaims>(std::move(found)), nullptr, context.device_classes,
                IndexOf(snapshot)};
  if (auto verdict = AdoptAssumed(pod, *wanted.index, wanted.claims)) return *std::move(verdict);
  // PostFilter gives such devices back; until then every binding would fail.
  for (const auto& claim : wanted.claims.allocated) {
    const std::optional<dra::Allocation>& allocation = claim->allocation;
    if (!allocation) continue;
    auto failure = FailureOf(*claim, *allocation);
    if (failure) return Verdict::Unresolvable(codes::kDevicesFailed, *std::move(failure));
    if (!wanted.index->IsExpired(claim->Key())) continue;
    auto missing = MissingOf(*claim, *allocation);
    if (missing) return Verdict::Unresolvable(codes::kDeviceBindingTimeout, *std::move(missing));
  }
  wanted.suspects = SuspectsOf(pod, *wanted.index);
  if (wanted.claims.open.empty()) return wanted;
  wanted.open = wanted.Prepare({});
  if (const auto& fault = wanted.open->prepared.fault()) return VerdictOf(*fault);
  return wanted;
}

// True if a pod of the same PodGroup has a node.
bool HasPlacedMember(const Pod& pod, const cluster::ClusterSnapshot& snapshot) {
  const auto& index = snapshot.context().devices;
  if (index != nullptr) return index->HasPlacedMember(pod);
  const auto is_member = [&](const auto& other) {
    return other->meta.ns == pod.meta.ns && other->scheduling_group == pod.scheduling_group;
  };
  for (size_t i = 0; i < snapshot.size(); ++i) {
    if (std::ranges::any_of(snapshot.node(i).pods, is_member)) return true;
  }
  return false;
}

bool IsAllocatedTo(const dra::ResourceClaim& claim, const Pod& pod) {
  return claim.allocation.has_value() &&
         std::ranges::all_of(claim.reserved_for,
                             [&](const auto& user) { return user.uid == pod.meta.uid; });
}

}  // namespace

Verdict DynamicResources::PreEnqueue(const Pod& pod) const {
  for (const cluster::PodClaim& claim : pod.claims) {
    if (!claim.claim.empty() || claim.unneeded) continue;
    return Verdict::Unresolvable(
        codes::kResourceClaimNotCreated,
        fmt::format("waiting for a resourceclaim to be created from template \"{}\"",
                    claim.template_name));
  }
  return Verdict::Fits();
}

bool DynamicResources::ConcernsIn(const cluster::ClusterSnapshot& snapshot, const Pod& pod) const {
  if (!KnowsDevices(snapshot.context())) return false;
  return pod.HasClaims() || !ExtendedResourcesOf(pod, snapshot.context()).empty();
}

PreFilterPlugin::Outcome DynamicResources::PreFilter(const Pod& pod,
                                                     const cluster::ClusterSnapshot& snapshot,
                                                     CycleState& state) const {
  Outcome outcome;
  outcome.skip = !ConcernsIn(snapshot, pod);
  if (outcome.skip) return outcome;
  auto prepared = Prepare(pod, snapshot);
  if (auto* verdict = std::get_if<Verdict>(&prepared)) {
    outcome.verdict = std::move(*verdict);
    return outcome;
  }
  const Wanted& wanted = state.Set(std::get<Wanted>(std::move(prepared)));
  if (!wanted.claims.extended.empty()) state.Set(ServesExtendedResources());
  for (const auto& claim : wanted.claims.allocated) {
    const std::optional<dra::Allocation>& allocation = claim->allocation;
    if (!allocation) continue;
    const std::string& node = dra::NodeOf(*allocation);
    if (node.empty()) continue;
    outcome.nodes = std::set<std::string>{node};
    outcome.elsewhere = Verdict::Unresolvable(
        codes::kDevicesElsewhere,
        fmt::format("resourceclaim \"{}\" has devices of another node", claim->Key()));
  }
  return outcome;
}

Verdict DynamicResources::Filter(const CycleState& state, const Pod& pod,
                                 const cluster::NodeInfo& node) const {
  const auto* wanted = state.Get<Wanted>();
  if (wanted == nullptr) return Verdict::Fits();
  if (!ReachDevices(wanted->claims, *node.node)) {
    return NotOnNode();
  }
  if (!wanted->claims.leftover.fits()) return wanted->claims.leftover;
  const auto open = wanted->OpenOn(pod, node);
  Verdict named = VerdictOnNamedClaim(pod, open.get());
  if (!named.fits() || open == nullptr) return named;
  if (const auto& fault = open->prepared.fault()) return VerdictOf(*fault);
  return VerdictOf(wanted->Fit(*open, node));
}

bool DynamicResources::PreScore(const Pod&, const cluster::ClusterSnapshot&, Nodes,
                                CycleState& state) const {
  const auto* wanted = state.Get<Wanted>();
  return wanted != nullptr && wanted->MayAllocate();
}

int64_t DynamicResources::Score(const CycleState& state, const Pod& pod,
                                const cluster::NodeInfo& node) const {
  const auto* wanted = state.Get<Wanted>();
  const auto open = wanted == nullptr ? nullptr : wanted->OpenOn(pod, node);
  return open == nullptr ? 0 : wanted->Score(*open, node).score;
}

int64_t DynamicResources::Normalized(int64_t score, int64_t /*lowest*/, int64_t highest) const {
  return std::max<int64_t>(kMaxScore - (highest - score), 0);
}

// Normalized shifts all scores by one amount, unless it raises the lowest ones to 0.
bool DynamicResources::KeepsDifferences(int64_t lowest, int64_t highest, int64_t reference) const {
  return lowest >= std::max(highest, reference) - kMaxScore;
}

uint64_t DynamicResources::Order(const CycleState& state, const Pod&,
                                 const cluster::NodeInfo& node) const {
  const auto* wanted = state.Get<Wanted>();
  if (wanted == nullptr) return 0;
  const auto found = wanted->by_node->find(node.node->meta.name);
  return found == wanted->by_node->end() ? 0 : found->second.order;
}

// Allocates again: the state may come from another pod of the same kind.
Verdict DynamicResources::Reserve(const Pod& pod, std::string_view node,
                                  cluster::ClusterSnapshot& snapshot, CycleState& state) const {
  if (state.Get<AssumedClaims>() != nullptr) state.Set(AssumedClaims());
  if (!ConcernsIn(snapshot, pod)) return Verdict::Fits();
  const std::shared_ptr<DeviceIndex> shared = snapshot.context().devices;
  if (shared != nullptr && !shared->IsBase(snapshot)) return Verdict::Fits();  // a what-if
  auto prepared = Prepare(pod, snapshot);
  if (auto* verdict = std::get_if<Verdict>(&prepared)) return std::move(*verdict);
  const Wanted& wanted = std::get<Wanted>(prepared);
  if (!wanted.claims.leftover.fits()) return wanted.claims.leftover;
  const cluster::NodeInfo* info = snapshot.Find(node);
  if (info == nullptr) {
    return Verdict::Unresolvable(NodeNotFound(node));
  }
  if (!ReachDevices(wanted.claims, *info->node)) {
    return NotOnNode();
  }
  const auto open = wanted.OpenOn(pod, *info);
  if (Verdict named = VerdictOnNamedClaim(pod, open.get()); !named.fits()) return named;
  AssumedClaims assumed;
  for (const auto& claim : wanted.claims.allocated) {
    const std::optional<dra::Allocation>& allocation = claim->allocation;
    if (!allocation) continue;
    const bool follows = wanted.claims.followed.contains(claim->Key()) || JoinsUsers(*claim, pod);
    const bool unsure = !follows && wanted.index->FindAssumed(claim->Key()) != nullptr;
    assumed.changes.push_back({claim, *allocation, unsure, unsure, follows});
  }
  if (open != nullptr) {
    if (const auto& fault = open->prepared.fault()) return VerdictOf(*fault);
    const AllocationOutcome outcome = wanted.Best(*open, *info);
    if (outcome.kind != AllocationOutcome::Kind::kAllocated) return VerdictOf(outcome);
    for (size_t i = 0; i < wanted.claims.open.size(); ++i) {
      assumed.changes.push_back({wanted.claims.open[i], outcome.allocations[i], true});
    }
    if (open->extended.claim != nullptr) {
      assumed.changes.push_back({open->extended.claim, outcome.allocations.back(), true, false,
                                 false, false, open->extended.mappings});
    }
  }
  for (const AssumedClaims::Change& change : assumed.changes) {
    if (!change.allocates) continue;
    const std::string key = change.claim->Key();
    if (shared != nullptr) {
      wanted.index->Withdraw(key);
      if (change.creates()) {
        wanted.index->AssumeNew(change.claim, change.allocation, pod.meta.uid);
      } else {
        wanted.index->Assume(key, change.allocation, pod.meta.uid, cluster::GangOf(pod));
      }
    } else {  // the snapshot is the only record
      auto after = std::make_shared<dra::ResourceClaim>(*change.claim);
      after->allocation = change.allocation;
      after->reserved_for.push_back(dra::ConsumerFor(*change.claim, pod, snapshot.context()));
      snapshot.ChangeContext(false).device_claims.Set(key, std::move(after));
    }
    if (dra::NodeOf(change.allocation).empty()) snapshot.ChangeContext();
  }
  state.Set(std::move(assumed));
  return Verdict::Fits();
}

// Once the write was sent, in this attempt or an earlier one, the API server may have stored the
// allocation, unless it has refused the write. A conflict is no such refusal: the write may have
// been sent twice, and stored the first time.
void DynamicResources::Unreserve(const Pod&, std::string_view, cluster::ClusterSnapshot& snapshot,
                                 CycleState& state) const {
  auto* assumed = state.Get<AssumedClaims>();
  if (assumed == nullptr) return;
  const auto* refused = state.Get<RefusedWrites>();
  for (const AssumedClaims::Change& change : assumed->changes) {
    if (!change.allocates) continue;
    const std::string key = change.claim->Key();
    if (const auto& index = snapshot.context().devices; index != nullptr) {
      const bool written =
          assumed->stage == AssumedClaims::Stage::kWritten &&
          (refused == nullptr || !refused->paths.contains(StatusPathOf(*change.claim)));
      written || change.doubtful ? index->SetDoubtful(key) : index->Withdraw(key);
    } else if (change.creates()) {
      snapshot.ChangeContext(false).device_claims.Set(key, nullptr);
    } else {
      snapshot.ChangeContext(false).device_claims.Set(key, change.claim);
    }
    if (dra::NodeOf(change.allocation).empty()) snapshot.ChangeContext();
  }
  *assumed = {};
}

Progress DynamicResources::PreBind(const Pod& pod, std::string_view,
                                   const cluster::ClusterSnapshot& snapshot, Time now,
                                   CycleState& state) const {
  auto* assumed = state.Get<AssumedClaims>();
  if (assumed == nullptr || assumed->changes.empty()) return {};
  const cluster::ClusterContext& context = snapshot.context();
  Progress progress =
      CheckClaims(*assumed, pod, context, state.Get<WrittenVersions>(), now, patience_);
  if (context.devices == nullptr) return progress;
  context.devices->suspects().Forget(now);
  if (progress.kind == Progress::Kind::kFailed) {
    const bool timed_out = progress.code == codes::kDeviceBindingTimeout;
    NoteUnprepared(*assumed, pod, timed_out, context, now);
  }
  return progress;
}

// Gives devices back that were allocated in an earlier attempt and bind the pod to a node that does
// not take it. A pod that shares them leaves the users of the claim, so that the last one can give
// them back. An allocation in doubt is written again first: a late arrival of the earlier write
// then changes nothing.
std::vector<codec::ApiRequest> DynamicResources::PostFilter(
    const Pod& pod, const cluster::ClusterSnapshot& snapshot) const {
  std::vector<codec::ApiRequest> writes;
  if (const auto claim = FindExtendedClaim(pod, snapshot.context())) {
    if (IsLeftover(*claim, pod)) writes = DeleteWrites(*claim);
  }
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    const dra::ResourceClaim* claim = snapshot.context().device_claims.Find(key);
    if (claim == nullptr || claim->deleted) continue;
    if (IsAllocatedTo(*claim, pod)) {
      writes.push_back(ClearWrite(*claim));
      continue;
    }
    if (claim->allocation && dra::IsReservedForGroupOf(*claim, pod)) {
      const bool unused = claim->reserved_for.size() == 1 && !HasPlacedMember(pod, snapshot);
      if (unused) writes.push_back(ClearWrite(*claim));
      continue;
    }
    if (claim->allocation && dra::IsReservedFor(*claim, pod)) {
      writes.push_back(ReleaseWrite(*claim, pod));
      continue;
    }
    const auto& index = snapshot.context().devices;
    const auto* assumed = index == nullptr ? nullptr : index->FindAssumed(key);
    if (assumed == nullptr || !assumed->doubtful) continue;
    writes.push_back(StatusWrite(*claim, claim->resource_version, &assumed->allocation,
                                 dra::ConsumerFor(*claim, pod, snapshot.context())));
  }
  return writes;
}

// A pod that left may never have been bound, and gives its devices back at once. Otherwise they are
// free when the claim changes.
bool DynamicResources::MayHelp(const ClusterEvent& event, const Pod& pod) const {
  using enum ClusterEvent::Kind;
  switch (event.kind) {
    case kNodeAdded:
      return true;
    case kNodeChanged:
      return !event.node_before || !event.node ||
             event.node_before->meta.labels != event.node->meta.labels;
    case kPodLeft: {
      const Pod* left = event.pod_before ? event.pod_before.get() : event.pod.get();
      return left == nullptr || left->HasClaims();
    }
    case kContext:
      break;
    case kNodeRemoved:
    case kPodBound:
    case kPodChanged:
      return false;
  }
  if (event.context_kind != dra::kClaimKind) return dra::IsDeviceKind(event.context_kind);
  const auto* before = event.ContextBefore<dra::ResourceClaim>();
  const auto* after = event.ContextAfter<dra::ResourceClaim>();
  const bool was = before != nullptr && before->allocation.has_value();
  const bool is = after != nullptr && after->allocation.has_value();
  if (was && !is) return true;
  const auto& changed = after != nullptr ? after : before;
  if (changed == nullptr) return true;  // the object is not known
  const std::vector<std::string> keys = dra::ClaimKeysOf(pod);
  return std::ranges::find(keys, changed->Key()) != keys.end() ||
         changed->Key() == dra::ExtendedClaimKey(pod);
}

size_t AlternativesOf(const Pod& pod, const cluster::ClusterContext& context) {
  size_t most = 1;
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    const dra::ResourceClaim* claim = context.device_claims.Find(key);
    if (claim == nullptr || claim->allocation) continue;
    for (const dra::DeviceRequest& request : claim->requests) {
      most = std::max(most, request.first_available.size());
    }
  }
  return most;
}

namespace {

// The version of the claim says nothing of an allocation that is not stored yet.
void AppendAssumption(const DeviceIndex::Assumption& assumed, const Pod& pod, std::string& kind) {
  kind += IsShared(assumed, pod) ? "?&" : "?";
  for (const dra::AllocatedDevice& device : assumed.allocation.devices) {
    kind += fmt::format("{}/{}/{},", device.driver.str(), device.pool.str(), device.device.str());
  }
}

}  // namespace

void AppendClaims(const Pod& pod, const cluster::ClusterContext& context, std::string& kind) {
  if (context.devices != nullptr && context.devices->first_alternative() > 0) {
    kind += fmt::format("^{}", context.devices->first_alternative());
  }
  if (context.devices != nullptr) {
    for (const dra::DeviceId& device : SuspectsOf(pod, *context.devices)) {
      kind += '~' + device.ToString();
    }
  }
  const bool extended = !ExtendedResourcesOf(pod, context).empty();
  if (const auto claim = extended ? FindExtendedClaim(pod, context) : nullptr) {
    kind += '@' + claim->Key() + claim->uid;
  }
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    const auto& claim = context.device_claims.Share(key);
    const auto* assumed = context.devices == nullptr ? nullptr : context.devices->FindAssumed(key);
    const bool foreign = claim != nullptr && !IsMadeFor(*claim, pod);
    const bool open =
        claim != nullptr && !claim->allocation && !claim->deleted && assumed == nullptr && !foreign;
    kind += open ? "=" : "#";
    kind += open ? claim->spec.str() : key;
    kind += ';';
    if (!open && claim != nullptr) kind += claim->resource_version;
    if (foreign) kind += '!';
    if (context.devices != nullptr && context.devices->IsExpired(key)) kind += '%';
    if (assumed != nullptr) AppendAssumption(*assumed, pod, kind);
  }
}

}  // namespace nos::scheduling
