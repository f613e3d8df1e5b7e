#include "study/openb/scheduler_placer.h"

#include <fmt/format.h>

#include "scheduling/framework.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cluster/annotations.h"
#include "gpu/modes.h"
#include "gpu/shares.h"
#include "scheduling/engine.h"

namespace nos::study {
namespace {

using scheduling::packing::Choice;
using scheduling::packing::kAnyModel;
using scheduling::packing::kMaxModels;
using scheduling::packing::kWholeGpu;
using scheduling::packing::Node;
using scheduling::packing::PodKind;

constexpr int kShares = kWholeGpu / kShareMilli;  // per GPU, one GiB each
constexpr int64_t kMaxPods = 1'000'000;
constexpr int64_t kMebibyte = int64_t{1} << 20;

std::string ProductOf(int model) { return fmt::format("openb-{}", model); }
std::string NodeName(size_t index) { return fmt::format("openb-{:06}", index); }

cluster::ResourceList Resources(int64_t cpu_milli, int64_t memory_mib) {
  return {{"cpu", Quantity::FromMilli(cpu_milli)},
          {"memory", Quantity::FromValue(memory_mib * kMebibyte)}};
}

// A hybrid node, as its agent would report it.
std::shared_ptr<const cluster::Node> NodeObject(const Node& node, size_t index) {
  const std::string shared = gpu::SharesOf(kShares, gpu::kMaxClients).name();
  const std::string whole = gpu::NameOf({.memory_gib = kShares, .whole = true});
  auto object = std::make_shared<cluster::Node>();
  object->meta.name = NodeName(index);
  object->meta.labels = {{std::string(cluster::kProductLabel), ProductOf(node.model)},
                         {std::string(cluster::kPartitioningLabel), "hybrid"}};
  object->allocatable = Resources(node.cpu_milli, node.memory_mib);
  object->allocatable["pods"] = Quantity::FromValue(std::min(node.pods, kMaxPods));
  for (size_t gpu = 0; gpu < node.gpu_milli.size(); ++gpu) {
    const auto annotate = [&](const char* what, std::string value) {
      object->meta.annotations[fmt::format("{}{}-{}", cluster::kPrefix, what, gpu)] =
          std::move(value);
    };
    const int gone = (kWholeGpu - node.gpu_milli[gpu] + kShareMilli - 1) / kShareMilli;
    annotate("status-model", shared);
    annotate("status-other-model", whole);
    annotate("status-layout", gone > 0 ? fmt::format("{}gb@0:used", gone) : "");
  }
  return object;
}

std::shared_ptr<const cluster::Pod> PodObject(const PodKind& kind, size_t number) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = "openb";
  pod->meta.name = fmt::format("openb-{:06}", number);
  pod->phase = "Pending";
  cluster::Container& container = pod->containers.emplace_back();
  container.requests = Resources(kind.cpu_milli, kind.memory_mib);
  if (kind.gpus > 0 && kind.milli == kWholeGpu) {
    container.requests[std::string(gpu::kWholeGpu)] = Quantity::FromValue(kind.gpus);
  } else if (kind.gpus > 0) {
    const gpu::Model& model = gpu::SharesOf(kShares, gpu::kMaxClients);
    const int gib = (kind.milli + kShareMilli - 1) / kShareMilli;
    container.requests[model.profile(static_cast<gpu::ProfileId>(gib - 1)).resource_name] =
        Quantity::FromValue(1);
  }
  if (kind.gpus > 0 && kind.models != kAnyModel) {
    cluster::SelectorRequirement product{std::string(cluster::kProductLabel), "In", {}};
    for (int model = 0; model < kMaxModels; ++model) {
      if ((kind.models >> model & 1) != 0) product.values.push_back(ProductOf(model));
    }
    pod->node_affinity.emplace().required = {{{std::move(product)}, {}}};
  }
  return pod;
}

// Number of pods after which the demand is computed again (packing::Packer).
size_t NextLook(size_t seen) { return seen < 1024 ? 2 * seen : seen + 1000; }

class SchedulerPlacer : public OpenbPlacer {
 public:
  explicit SchedulerPlacer(const std::vector<Node>& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) engine_.SetNode(NodeObject(nodes[i], i));
  }

  std::optional<Choice> Choose(const PodKind& kind) override {
    const auto pod = PodObject(kind, seen_++);
    waiting_.push_back(pod);
    if (seen_ == next_look_) {
      engine_.Precompute(framework_, waiting_);
      next_look_ = NextLook(seen_);
    }
    const scheduling::Decision decision = engine_.Schedule(framework_, pod);
    if (decision.node == nullptr) return std::nullopt;  // stays pending
    waiting_.pop_back();
    const std::string node = decision.node->node->meta.name;
    const auto placed = scheduling::WithInstances(framework_, engine_.PrecomputedOf(framework_),
                                                  *decision.node, pod);
    engine_.Assume(placed, node);
    Choice choice{engine_.snapshot().IndexOf(node).value_or(0), {}};
    for (const cluster::PromisedInstance& gpu : placed->promised) {
      choice.devices.push_back(gpu.gpu);
    }
    std::ranges::sort(choice.devices);
    return choice;
  }
  void Placed(const PodKind&, const Choice&) override {}  // already assumed

 private:
  const scheduling::Framework framework_ =
      scheduling::Framework::Default(scheduling::PartitionedBy::kScheduler);
  scheduling::Engine engine_{gpu::Catalogue::Builtin()};
  std::vector<std::shared_ptr<const cluster::Pod>> waiting_;
  size_t seen_ = 0, next_look_ = 1;
};

}  // namespace

std::unique_ptr<OpenbPlacer> MakeSchedulerPlacer(const std::vector<Node>& nodes) {
  return std::make_unique<SchedulerPlacer>(nodes);
}

}  // namespace nos::study
