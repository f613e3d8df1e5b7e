// Phrases that reasons and remedies share.
#pragma once

#include <string>
#include <string_view>

#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// "3g.20gb" of "nvidia.com/mig-3g.20gb".
std::string ProfileText(const std::string& resource);
// The resource that agents advertise if the pod requests the profile under another of its names
// ("nvidia.com/mig-7g.80gb" for "nvidia.com/mig-7g.79gb"). "" if the model has no such profile or
// the catalogue does not allow it.
std::string OfferedAs(const gpu::Model& model, const std::string& resource);
// True if GPUs of the model have a profile of exactly this name that the catalogue allows.
bool CanBeCutInto(const gpu::Model& model, const std::string& resource);
// "2 x 1g.5gb and 3g.20gb".
std::string SlicesText(const Translation& translation, const PodClass& cls);
// "500m cpu", "2Gi memory".
std::string AmountText(cluster::ResourceId id, int64_t amount);
// In the words of kube-scheduler: "Insufficient cpu", "Too many pods".
std::string InsufficientText(cluster::ResourceId id);
// "mps" or "hybrid" if the node's label requests that mode but no agent has reported such GPUs;
// else "".
std::string_view UntoldPartitioning(const cluster::Node& node);

// The pod that holds an instance, in the snapshot or in the plan under construction: "a/b", or ""
// if unknown.
std::string HolderOf(const Translation& translation, const StagedResult& result,
                     const SlotInTheWay& slot);
// "pod a/b (3g.20gb@4 of GPU 2), cpu or the like".
std::string InTheWayText(const Translation& translation, const StagedResult& result,
                         const FuturePlace& place);

}  // namespace nos::planning
