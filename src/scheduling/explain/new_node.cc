// Finds what a new node must have for a pod that no existing node can hold.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/annotations.h"
#include "gpu/shares.h"
#include "scheduling/explain/obstacles.h"
#include "scheduling/plugins/node_resources_fit/fit.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {
namespace {

constexpr int64_t kStepsOfNode = 3;

// A resource of which a node never has enough.
struct TooLittle {
  cluster::ResourceId resource = 0;
  int64_t asked = 0;
  int64_t total = 0;     // beside what `kept` and `members` hold
  bool kept = false;     // DaemonSet and static pods hold some
  bool members = false;  // members of the pod's gang hold some
};

int64_t HeldByMembers(const cluster::NodeInfo& node, cluster::ResourceId id) {
  int64_t held = 0;
  for (const auto& pod : node.pods) {
    if (IsPlacedMember(*pod)) held += cluster::RequestsOf(*pod).Get(id);
  }
  return held;
}

using Request = std::pair<cluster::ResourceId, int64_t>;

// Fills `lacks`, which is reused for all nodes.
void FindTooLittle(const cluster::NodeInfo& node, const std::vector<Request>& requests,
                   std::vector<TooLittle>& lacks) {
  lacks.clear();
  for (const auto& [id, asked] : requests) {
    int64_t total = node.allocatable.Get(id), kept = 0, members = 0;
    if (total >= asked) {
      kept = HeldByTiedPods(node, id);
      members = HeldByMembers(node, id);
      total -= kept + members;
    }
    if (total >= asked) continue;
    lacks.push_back({id, asked, std::max<int64_t>(total, 0), kept > 0, members > 0});
  }
}

}  // namespace

struct SliceDemand::NewNode {
  const cluster::Pod& pod;
  const cluster::ClusterSnapshot& snapshot;
  std::vector<Request> requests = {};  // besides slices and the number of pods, by name

  // The node that is nearest by its size, if it is too small: ": node a, the nearest, has 2 cpu".
  std::string Nearest(const std::function<void(int64_t)>& spend) const {
    const auto shortfall = [](const std::vector<TooLittle>& lacks) {
      double sum = 0;
      for (const TooLittle& lack : lacks) {
        sum += 1 - static_cast<double>(lack.total) / static_cast<double>(lack.asked);
      }
      return sum;
    };
    const cluster::NodeInfo* nearest = nullptr;
    std::vector<TooLittle> lacks, here;
    std::pair<size_t, double> least(std::numeric_limits<size_t>::max(), 0);
    for (size_t n = 0; n < snapshot.size() && least.first > 0; ++n) {
      spend(kStepsOfNode);
      FindTooLittle(snapshot.node(n), requests, here);
      if (here.size() > least.first) continue;
      const std::pair rank(here.size(), shortfall(here));
      if (rank >= least) continue;
      least = rank;
      nearest = &snapshot.node(n);
      lacks.swap(here);
    }
    if (nearest == nullptr) return ": the cluster has none";
    return lacks.empty() ? "" : Text(lacks, *nearest);
  }

 private:
  static std::string Text(const std::vector<TooLittle>& lacks, const cluster::NodeInfo& node) {
    const std::string& name = node.node->meta.name;
    std::vector<std::string> totals;
    for (const TooLittle& lack : lacks) {
      totals.push_back(AmountText(cluster::ResourceName(lack.resource), lack.total));
    }
    if (std::ranges::any_of(lacks, &TooLittle::members)) {
      return fmt::format(": other members of its gang take what node {} has", name);
    }
    // GPUs that may be partitioned for MIG do not count as whole ones.
    const auto beside_mig = [&](const TooLittle& lack) {
      return IsKeptForMig(lack.resource, node);
    };
    return fmt::format(
        ": node {}, the nearest, has {} {}", name, Join(totals, " and "),
        std::ranges::any_of(lacks, &TooLittle::kept) ? "beside its DaemonSet and static pods"
        : std::ranges::any_of(lacks, beside_mig)     ? "beside GPUs that may be partitioned for MIG"
                                                     : "in all");
  }
};

Remedy SliceDemand::AddNode(const NewNode& node, std::vector<std::string> gpus) const {
  std::vector<std::string> parts, amounts;
  for (const auto& [key, value] : node.pod.node_selector) {
    parts.push_back(fmt::format("label {}={}", key, value));
  }
  const auto& affinity = node.pod.node_affinity;
  if (affinity && affinity->required) {
    parts.emplace_back("the labels that its node affinity requires");
  }
  const bool any_node = parts.empty() && gpus.empty() && !node.requests.empty();
  parts.insert(parts.end(), gpus.begin(), gpus.end());
  for (const auto& [id, asked] : node.requests) {
    amounts.push_back(AmountText(cluster::ResourceName(id), asked));
  }
  if (!amounts.empty()) parts.push_back("at least " + Join(amounts, " and "));
  std::string text = any_node ? "add a node" : "add a node that the pod may use";
  if (!parts.empty()) text += (any_node ? " with " : ", with ") + Join(parts, " and ");
  return {remedies::kAddNode, text + node.Nearest(spend_)};
}

Remedy SliceDemand::ForNoNode(const cluster::Pod& pod,
                              const cluster::ClusterSnapshot& snapshot) const {
  NewNode node{pod, snapshot};
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  for (const auto& [id, asked] : requests.entries()) {
    const bool slice =
        cluster::IsSliceResource(id) || std::ranges::any_of(slices_, [&](const auto& one) {
          return one.first == cluster::ResourceName(id);
        });
    if (asked > 0 && id != cluster::kPods && !slice) node.requests.emplace_back(id, asked);
  }
  std::ranges::sort(node.requests, {},
                    [](const Request& request) { return cluster::ResourceName(request.first); });
  if (slices_.empty()) return AddNode(node, {});
  if (auto impossible = Impossible()) return *std::move(impossible);
  for (const auto& model : catalogue_.models()) {
    if (!Suits(*model) || GpusFor(*model) > kMaxGpusOfNode) continue;
    if (auto larger = LargerProfile()) return *std::move(larger);
    return AddNode(node, {fmt::format("GPUs for {} such as {}", Text(), model->name())});
  }
  if (auto shared = SharedNode(node)) return *std::move(shared);
  if (auto name = AdvertisedName()) return *std::move(name);
  if (auto allow = InCatalogue()) return *std::move(allow);
  if (auto hybrid = HybridNode(node)) return *std::move(hybrid);
  return ExistingProfile();
}

// A node with shared GPUs for the largest share.
std::optional<Remedy> SliceDemand::SharedNode(const NewNode& node) const {
  int most = 0;
  const gpu::Model& model = gpu::SharesOf(gpu::kMaxShareGib);
  for (const auto& [resource, count] : slices_) {
    const auto profile = model.FindProfile(resource);
    if (!profile) return std::nullopt;
    most = std::max(most, model.profile(*profile).slots);
  }
  return AddNode(node, {fmt::format("label {}=mps", cluster::kPartitioningLabel),
                        fmt::format("{} GiB of a GPU's memory free", most)});
}

// For slices that only agents of hybrid nodes provide, or that no GPU provides in one sharing mode.
std::optional<Remedy> SliceDemand::HybridNode(const NewNode& node) const {
  bool time_slices = false, hybrid = false;
  int64_t asked = 0;
  for (const auto& [resource, count] : slices_) {
    if (gpu::IsPartResource(resource)) return Parts(resource);
    const bool plain = IsOfHybridNodes(resource);
    if (!plain && !IsProvided(resource)) return std::nullopt;
    time_slices = time_slices || resource == gpu::kTimeSlice;
    hybrid = hybrid || plain || gpu::IsShareResource(resource);
    asked += plain ? std::min(count, kMaxGpusOfNode + 1) : 0;
  }
  if (!hybrid || asked > kMaxGpusOfNode) return std::nullopt;
  return AddNode(node,
                 {fmt::format("label {}=hybrid{}", cluster::kPartitioningLabel,
                              time_slices ? ", time slices (hybrid.timeSlices of its agent)" : ""),
                  "room for " + Text()});
}

}  // namespace nos::scheduling
