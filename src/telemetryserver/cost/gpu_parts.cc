#include "telemetryserver/cost/gpu_parts.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "telemetryserver/cost/money.h"
#include "telemetryserver/state/readings.h"

namespace nos::telemetryserver {
namespace {

constexpr int64_t kParts = 1'000'000;  // resolution of a utilization
constexpr int64_t kMaxSlots = 1'000'000;

// Slots of a GPU with one owner or none.
struct Piece {
  int64_t slots = 0;
  const std::vector<telemetry::Holder>* holders = nullptr;  // null: free
  std::optional<double> utilization{};
  Category category = Category::kFree;  // if it is free
};

int64_t SizeOf(const telemetry::Instance& instance) {
  return std::clamp<int64_t>(instance.size, 0, kMaxSlots);
}

class Pieces {
 public:
  Pieces(const telemetry::Gpu& gpu, const GpuUse& use) : gpu_(gpu), use_(use) {
    // The driver measures no single MPS share or time slice: it counts with its GPU's utilization.
    const bool together = gpu.SharedByMps() || gpu.InTurns();
    for (const telemetry::Instance& instance : gpu.instances) {
      const int64_t size = SizeOf(instance);
      in_slices_ += size;
      if (instance.holders.empty()) {
        free_ += size;
      } else {
        AddHeld(size, instance.holders, together ? SubjectOf(gpu) : SubjectOf(instance));
      }
    }
    AddRest();
  }
  std::vector<Piece> Take() && { return std::move(pieces_); }

 private:
  void AddHeld(int64_t slots, const std::vector<telemetry::Holder>& holders,
               const std::string& subject) {
    if (slots > 0) pieces_.push_back({slots, &holders, use_.utilization(subject)});
  }
  void AddFree(int64_t slots, Category category) {
    if (slots > 0) pieces_.push_back({slots, nullptr, std::nullopt, category});
  }
  void AddRest() {
    const bool divided = gpu_.slots > 0 || in_slices_ > 0;
    const int64_t slots = divided ? std::clamp<int64_t>(gpu_.slots, 0, kMaxSlots) : 1;
    int64_t rest = std::max<int64_t>(0, slots - in_slices_);
    if (!gpu_.holders.empty()) {
      AddHeld(rest, gpu_.holders, SubjectOf(gpu_));
      rest = 0;
    }
    if (use_.stranded) return AddFree(free_ + rest, Category::kStranded);
    // Slots in no slice first: a free slice is of use as it is.
    const int64_t useless =
        std::clamp<int64_t>(free_ + rest - use_.usable.value_or(free_ + rest), 0, free_ + rest);
    const int64_t useless_rest = std::min(rest, useless);
    const bool whole = !divided && !gpu_.mig;
    AddFree(free_ - (useless - useless_rest), Category::kFree);
    AddFree(rest - useless_rest, whole ? Category::kFree : Category::kUnpartitioned);
    AddFree(useless, Category::kFragmented);
  }

  const telemetry::Gpu& gpu_;
  const GpuUse& use_;
  int64_t in_slices_ = 0, free_ = 0;
  std::vector<Piece> pieces_;
};

// Divides each amount alike.
std::vector<CostSums> SplitSums(const CostSums& sums, std::span<const int64_t> weights) {
  std::vector<CostSums> parts(weights.size());
  for (Micros CostSums::* field : {&CostSums::cost, &CostSums::gpu_time, &CostSums::unpriced}) {
    const std::vector<Micros> amounts = Split(sums.*field, weights);
    for (size_t i = 0; i < parts.size(); ++i) parts[i].*field = amounts[i];
  }
  return parts;
}

void AddHolder(const telemetry::Holder& holder, const Piece& piece, const CostSums& sums,
               bool reported, std::vector<GpuPart>& parts) {
  if (!reported || !piece.utilization) {
    const Category category = reported ? Category::kUnknown : Category::kNotReported;
    parts.push_back({&holder, category, sums});
    return;
  }
  const auto busy = static_cast<int64_t>(
      std::llround(std::clamp(*piece.utilization, 0.0, 1.0) * static_cast<double>(kParts)));
  const std::vector<CostSums> halves = SplitSums(sums, std::vector<int64_t>{busy, kParts - busy});
  if (busy > 0) parts.push_back({&holder, Category::kUsed, halves[0]});
  if (busy < kParts) parts.push_back({&holder, Category::kIdle, halves[1]});
}

// Pods, each once: a pod with two containers on a slice counts as one.
std::vector<const telemetry::Holder*> PodsOf(const std::vector<telemetry::Holder>& holders) {
  std::vector<const telemetry::Holder*> pods;
  for (const telemetry::Holder& holder : holders) {
    const bool known = std::ranges::any_of(pods, [&](const telemetry::Holder* pod) {
      return pod->ns == holder.ns && pod->pod == holder.pod;
    });
    if (!known) pods.push_back(&holder);
  }
  return pods;
}

}  // namespace

std::vector<GpuPart> PartsOf(const telemetry::Gpu& gpu, const GpuUse& use, const CostSums& sums) {
  const std::vector<Piece> pieces = Pieces(gpu, use).Take();
  std::vector<int64_t> slots;
  for (const Piece& piece : pieces) slots.push_back(piece.slots);
  std::vector<GpuPart> parts;
  if (pieces.empty()) {  // slices without a size on a GPU without slots
    parts.push_back({nullptr, Category::kUnpartitioned, sums});
    return parts;
  }
  const std::vector<CostSums> of_pieces = SplitSums(sums, slots);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.holders == nullptr) {
      parts.push_back(
          {nullptr, use.reported ? piece.category : Category::kNotReported, of_pieces[i]});
      continue;
    }
    const std::vector<const telemetry::Holder*> pods = PodsOf(*piece.holders);
    const std::vector<CostSums> of_pods =
        SplitSums(of_pieces[i], std::vector<int64_t>(pods.size(), 1));
    for (size_t p = 0; p < pods.size(); ++p) {
      AddHolder(*pods[p], piece, of_pods[p], use.reported, parts);
    }
  }
  return parts;
}

}  // namespace nos::telemetryserver
