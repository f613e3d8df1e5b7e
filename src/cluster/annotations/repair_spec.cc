// Finds unusable spec annotations.
#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "cluster/annotations.h"
#include "cluster/annotations/reported.h"

namespace nos::cluster {
namespace {

// The name without either prefix; "" if it has neither.
std::string_view Tail(std::string_view name) {
  for (const std::string_view prefix : {kPrefix, kOldPrefix}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return {};
}

class SpecReader {
 public:
  SpecReader(const Node& node, const NodeGpus& gpus)
      : node_(node), status_(ReadReported(node, Family::kStatus)) {
    const auto label = node.meta.labels.find(kCountLabel);
    if (label != node.meta.labels.end()) count_ = ParseInt(label->second);
    for (const Gpu& gpu : gpus.gpus) readable_.insert(gpu.index);
    for (const TargetLayout& target : ReadSpec(node, gpus)) targets_.insert(target.index);
  }

  SpecRepair Read() const {
    SpecRepair repair;
    for (const auto& [name, value] : node_.meta.annotations) {
      const std::string_view tail = Tail(name);
      const std::string fault = FaultOf(tail, value);
      if (fault.empty()) continue;
      repair.patch[name] = std::nullopt;
      repair.problems.push_back(fmt::format("{}={}: {}", tail, Shortened(value, 100), fault));
    }
    return repair;
  }

 private:
  // The fault of an annotation; "" if it is correct or not a spec annotation.
  std::string FaultOf(std::string_view tail, std::string_view value) const {
    if (tail == kSpecPlan.substr(kPrefix.size())) {
      return ParsePlanId(value) ? "" : fmt::format("a plan id is a number up to {}", kMaxPlanId);
    }
    if (!IsGpuAnnotation(tail, Family::kSpec)) return "";
    const auto key = ParseAnnotationKey(tail, Family::kSpec);
    if (!key) return "the key is malformed";
    const bool count = key->kind == AnnotationKey::Kind::kCount;
    if (count && !ParseCount(value)) return "this is not a count";
    if (!Exists(key->gpu)) return fmt::format("there is no GPU {}", key->gpu);
    // A GPU that is unreadable now may become readable again: its spec stays.
    if (!readable_.contains(key->gpu) || targets_.contains(key->gpu)) return "";
    return fmt::format("GPU {} cannot be partitioned like that, or counts and layout differ",
                       key->gpu);
  }

  bool Exists(int gpu) const {
    return !count_ || gpu < *count_ || status_.gpus.contains(gpu) || readable_.contains(gpu);
  }

  const Node& node_;
  Reported status_;
  std::optional<int64_t> count_;  // GPU count of the label; nullopt if unknown
  std::set<int> readable_, targets_;
};

}  // namespace

SpecRepair RepairSpec(const Node& node, const NodeGpus& gpus) {
  return gpus.managed ? SpecReader(node, gpus).Read() : SpecRepair();
}

}  // namespace nos::cluster
