#include "cluster/instance_search.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "gpu/fragmentation.h"
#include "gpu/shares.h"

namespace nos::cluster {
namespace {

using gpu::LayoutTable;
using gpu::ProfileId;

constexpr int kMaxInstances = 512;       // above the number on any node
constexpr int kMaxSteps = 2000;          // per search
constexpr int64_t kMaxMixtures = 4096;   // of shares that one pod may request
constexpr size_t kMaxRemembered = 4096;  // nodes, and states of GPUs

ResourceId Whole() {
  static const ResourceId whole = InternResource(kWholeGpuResource);
  return whole;
}

// Includes whole GPUs: they are instances on some nodes.
std::vector<ResourceId> InstancesIn(const ResourceVector& requests) {
  std::vector<ResourceId> kinds;
  for (const auto& [id, amount] : requests.entries()) {
    if ((IsSliceResource(id) || id == Whole()) && amount > 0) kinds.push_back(id);
  }
  std::ranges::sort(kinds, {}, ResourceName);
  return kinds;
}

std::vector<GpuDraft> GpuDraftsOf(const NodeInfo& node) {
  std::vector<GpuDraft> drafts;
  for (const Gpu& gpu : node.gpus.gpus) {
    if (auto draft = GpuDraftOf(gpu)) drafts.push_back(*std::move(draft));
  }
  return drafts;
}

std::vector<size_t> OffersOf(OfferBook& book, const std::vector<GpuDraft>& drafts) {
  std::vector<size_t> offers;
  offers.reserve(drafts.size());
  for (const GpuDraft& draft : drafts) offers.push_back(book.OffersOf(draft));
  return offers;
}

struct Choice {
  int changes = 0;  // instances created and destroyed
  double loss = 0;  // of potential, in units of GPUs
  size_t draft = 0;
  gpu::Placement placement;
  bool switches = false;     // the GPU must first switch to its other model
  bool unpreferred = false;  // the GPU is not the preferred one
};

bool Better(const Choice& a, const Choice& b) {
  return std::tuple(a.changes, a.unpreferred, a.loss, a.draft, b.placement) <
         std::tuple(b.changes, b.unpreferred, b.loss, b.draft, a.placement);
}

// Assigns each instance its best placement that leaves placements for the others. `plan`, the
// assignment of instances to GPUs, guarantees that one exists.
class Placing {
 public:
  Placing(OfferBook& book, std::vector<GpuDraft> drafts, Share asked, std::vector<Share> plan,
          std::optional<int> preferred)
      : book_(book),
        drafts_(std::move(drafts)),
        sizes_(book.SizesOn(drafts_)),
        left_(std::move(asked)),
        plan_(std::move(plan)),
        preferred_(preferred) {
    for (const GpuDraft& draft : drafts_) {
      for (const gpu::Model* model : {&draft.model(), draft.Other()}) {
        if (model != nullptr && !plain_.contains(model)) plain_[model] = gpu::PlainProfiles(*model);
      }
    }
  }

  std::optional<std::vector<PromisedInstance>> Run() {
    // Large instances first: the remaining gaps suit small ones.
    std::vector<size_t> order(left_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t kind) { return sizes_[0][kind]; });
    for (const size_t kind : order) {
      while (left_[kind] > 0) {
        if (!Place(kind)) return std::nullopt;
      }
    }
    return std::move(found_);
  }

 private:
  // Always succeeds: the plan admits at least one choice.
  bool Place(size_t kind) {
    --left_[kind];
    for (const Choice& choice : Choices(kind)) {
      GpuDraft& draft = drafts_[choice.draft];
      const GpuDraft before = draft;
      if (choice.switches) draft.Switch();
      Take(choice.placement, draft);
      if (Keeps(choice.draft, kind) || Replans()) {
        found_.push_back({draft.gpu->index, choice.placement,
                          &draft.model() == draft.gpu->model ? nullptr : &draft.model()});
        return true;
      }
      draft = before;
    }
    return false;
  }

  // True if the rest of the plan for this GPU still fits on it.
  bool Keeps(size_t draft, size_t kind) {
    Share rest = plan_[draft];
    if (--rest[kind] < 0 || !book_.CanHold(book_.OffersOf(drafts_[draft]), rest)) return false;
    plan_[draft] = std::move(rest);
    return true;
  }

  bool Replans() {
    auto plan = book_.Divide(left_, OffersOf(book_, drafts_), sizes_, steps_);
    if (!plan) return false;
    plan_ = *std::move(plan);
    return true;
  }

  // False if it does not fit.
  static bool Take(gpu::Placement placement, GpuDraft& draft) {
    if (!draft.used.Add(placement)) return false;
    const bool there = std::erase(draft.free, placement) > 0;
    if (!there) draft.free = Staying(draft.used, std::move(draft.free));
    return true;
  }

  std::vector<Choice> Choices(size_t kind) const {
    std::vector<Choice> choices;
    for (size_t i = 0; i < drafts_.size(); ++i) {
      AddChoices(kind, i, drafts_[i], 0, choices);
      if (drafts_[i].Other() == nullptr) continue;
      GpuDraft switched = drafts_[i];
      switched.Switch();
      AddChoices(kind, i, switched, 1 + static_cast<int>(drafts_[i].free.size()), choices);
    }
    std::ranges::sort(choices, Better);
    return choices;
  }

  void AddChoices(size_t kind, size_t i, const GpuDraft& draft, int changes,
                  std::vector<Choice>& choices) const {
    const auto profile = book_.ProfilesOf(draft.model())[kind];
    if (!profile) return;
    for (const gpu::Placement& placement : PlacesFor(draft, *profile)) {
      auto choice = ChoiceFor(draft, placement);
      if (!choice) continue;
      choice->draft = i;
      choice->unpreferred = preferred_ && draft.gpu->index != *preferred_;
      choice->switches = changes > 0;
      choice->changes += changes;
      choices.push_back(*choice);
    }
  }

  // Placements beside the used instances. Equal shares are interchangeable, so at most one: a free
  // share, or else a new one under an unused number.
  static std::vector<gpu::Placement> PlacesFor(const GpuDraft& draft, ProfileId profile) {
    std::vector<gpu::Placement> places;
    if (!draft.used.model().counted()) {
      const LayoutTable& table = draft.used.model().layouts();
      for (uint64_t left = table.Addable(draft.used.layout()) & table.PlacementsOf(profile);
           left != 0; left &= left - 1) {
        places.push_back(table.placements()[static_cast<size_t>(std::countr_zero(left))]);
      }
      return places;
    }
    if (draft.used.Copies(profile) == 0) return {};
    const auto free = std::ranges::find(draft.free, profile, &gpu::Placement::profile);
    if (free != draft.free.end()) return {*free};
    return {{profile, UnusedStart(draft)}};
  }

  // Prefers numbers without a share; the number of a free share (which is then destroyed) is the
  // last resort.
  static uint8_t UnusedStart(const GpuDraft& draft) {
    uint64_t taken = draft.used.starts();
    for (const gpu::Placement& placement : draft.free) taken |= uint64_t{1} << placement.start;
    const int unused = std::countr_one(taken);
    return static_cast<uint8_t>(unused < gpu::kMaxClients ? unused
                                                          : std::countr_one(draft.used.starts()));
  }

  std::optional<Choice> ChoiceFor(const GpuDraft& before, gpu::Placement placement) const {
    GpuDraft draft = before;
    const bool there = std::ranges::find(draft.free, placement) != draft.free.end();
    if (!there && !draft.MayBePartitioned()) return std::nullopt;
    const size_t others = draft.free.size() - (there ? 1 : 0);
    if (!Take(placement, draft)) return std::nullopt;
    return Choice{static_cast<int>((there ? 0 : 1) + others - draft.free.size()),
                  gpu::LostGpus(before.used, draft.used, plain_.at(&draft.model())), 0, placement};
  }

  OfferBook& book_;
  std::vector<GpuDraft> drafts_;
  const std::vector<Share> sizes_;
  std::map<const gpu::Model*, std::vector<ProfileId>> plain_;
  Share left_;                    // still to be placed
  std::vector<Share> plan_;       // the part of `left_` that each GPU gets
  std::optional<int> preferred_;  // Gpu::index
  std::vector<PromisedInstance> found_;
  int steps_ = kMaxSteps;
};

// How many instances of this kind fit if no other kind is placed.
int64_t CapacityOf(const Gpu& gpu, const std::string& resource) {
  const auto profile = gpu.model->FindProfile(resource);
  const bool may_be_partitioned = !gpu.fixed && gpu.reported;
  if (!profile) {
    const auto other = may_be_partitioned && gpu.MaySwitch()
                           ? gpu.alternative->FindProfile(resource)
                           : std::nullopt;
    return other ? gpu::Occupancy(*gpu.alternative).Copies(*other) : 0;
  }
  const auto used = gpu.Used();
  if (!used) return 0;
  if (may_be_partitioned) return used->Copies(*profile);
  return std::ranges::count_if(gpu.instances, [&](const Instance& instance) {
    return !instance.used && instance.placement.profile == *profile;
  });
}

int64_t Capacity(const NodeInfo& node, ResourceId id) {
  int64_t capacity = 0;
  for (const Gpu& gpu : node.gpus.gpus) capacity += CapacityOf(gpu, ResourceName(id));
  return capacity;
}

}  // namespace

bool MayBePartitioned(const NodeInfo& node) {
  if (!node.gpus.managed) return false;
  const bool ours =
      std::ranges::any_of(node.pods, [](const auto& pod) { return !pod->promised.empty(); });
  return ours || SpecPlan(*node.node) == StatusPlan(*node.node);
}

std::shared_ptr<const Node> WithoutPlan(const std::shared_ptr<const Node>& node) {
  std::string plan = SpecPlan(*node);
  if (plan == StatusPlan(*node)) return node;
  auto done = std::make_shared<Node>(*node);
  done->meta.annotations[std::string(kStatusPlan)] = std::move(plan);
  return done;
}

NodeGpus WithoutLeavers(const NodeInfo& node) {
  NodeGpus gpus = node.gpus;
  std::map<ResourceId, int64_t> used;
  const auto each = [&](auto call) {
    for (Gpu& gpu : gpus.gpus) {
      for (Instance& instance : gpu.instances) {
        const auto& profile = gpu.model->profile(instance.placement.profile);
        if (instance.used) call(instance, InternResource(profile.resource_name));
      }
    }
  };
  each([&](const Instance&, ResourceId id) { ++used[id]; });
  each([&](Instance& instance, ResourceId id) {
    const bool surplus = instance.pod.empty() && used[id] > node.requested.Get(id);
    const bool leaves = std::ranges::any_of(node.pods, [&](const auto& pod) {
      return pod->Key() == instance.pod && pod->meta.deleted;
    });
    if (!instance.left && !surplus && !leaves) return;
    --used[id];
    instance.used = instance.left = false;
  });
  return gpus;
}

bool HasFreeInstances(const NodeInfo& node, const ResourceVector& requests) {
  return std::ranges::all_of(requests.entries(), [&](const auto& entry) {
    const auto& [id, amount] = entry;
    return !IsManagedOn(node, id) || amount <= 0 ||
           amount <= node.allocatable.Get(id) - node.requested.Get(id);
  });
}

InstanceFinder::InstanceFinder(const ResourceVector& requests)
    : InstanceFinder(InstancesIn(requests), requests) {}

InstanceFinder::InstanceFinder(std::vector<ResourceId> kinds, const ResourceVector& requests)
    : book_({}, {}) {
  int64_t mixtures = 1;  // of shares
  for (const ResourceId kind : kinds) {
    const int64_t amount = requests.Get(kind);
    asked_.push_back(static_cast<int>(std::min<int64_t>(amount, kMaxInstances)));
    if (gpu::IsShareResource(ResourceName(kind)) && !too_many_) mixtures *= asked_.back() + 1;
    too_many_ = too_many_ || amount > kMaxInstances || mixtures > kMaxMixtures;
  }
  book_ = OfferBook(std::move(kinds), asked_);
}

// Bounds the memory of the caches.
void InstanceFinder::Forget() {
  if (std::max(book_.size(), known_.size()) < kMaxRemembered) return;
  book_ = OfferBook(book_.kinds(), asked_);
  known_.clear();
}

Share InstanceFinder::AskedOf(const NodeInfo& node) const {
  Share asked = asked_;
  const auto whole = std::ranges::find(book_.kinds(), Whole());
  if (!node.gpus.whole && whole != book_.kinds().end()) {
    asked[static_cast<size_t>(whole - book_.kinds().begin())] = 0;
  }
  return asked;
}

std::optional<std::vector<PromisedInstance>> InstanceFinder::Find(const NodeInfo& node,
                                                                  std::optional<int> preferred) {
  if (!MayBePartitioned(node) || too_many_) return std::nullopt;
  Forget();
  const Share asked = AskedOf(node);
  std::vector<GpuDraft> drafts = GpuDraftsOf(node);
  int steps = kMaxSteps;
  auto plan = book_.Divide(asked, OffersOf(book_, drafts), book_.SizesOn(drafts), steps);
  if (!plan) return std::nullopt;
  return Placing(book_, std::move(drafts), asked, *std::move(plan), preferred).Run();
}

bool InstanceFinder::Can(const NodeInfo& node) {
  if (!MayBePartitioned(node) || too_many_) return false;
  const Share asked = AskedOf(node);
  if (std::ranges::all_of(asked, [](int count) { return count == 0; })) return true;
  if (asked.size() == 1) return asked[0] <= Capacity(node, book_.kinds()[0]);
  Forget();
  const std::vector<GpuDraft> drafts = GpuDraftsOf(node);
  std::vector<size_t> offers = OffersOf(book_, drafts);
  std::ranges::sort(offers);
  const auto [known, fresh] = known_.try_emplace({std::move(offers), asked});
  if (!fresh) return known->second;
  int steps = kMaxSteps;
  known->second = book_.Divide(asked, known->first.first, book_.SizesOn(drafts), steps).has_value();
  return known->second;
}

std::optional<std::vector<PromisedInstance>> FindInstances(const NodeInfo& node,
                                                           const ResourceVector& requests,
                                                           std::optional<int> preferred) {
  return InstanceFinder(requests).Find(node, preferred);
}

bool CanProvide(const NodeInfo& node, const ResourceVector& requests) {
  return InstanceFinder(requests).Can(node);
}

}  // namespace nos::cluster
