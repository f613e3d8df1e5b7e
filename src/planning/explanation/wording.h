// The words that reasons and remedies share.
#pragma once

#include <string>
#include <string_view>

#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// "3g.20gb" of "nvidia.com/mig-3g.20gb".
std::string ProfileText(const std::string& resource);
// The resource that agents offer where the pod asks for a profile by another of its names
// ("nvidia.com/mig-7g.80gb" for "nvidia.com/mig-7g.79gb"); "" if the model has no such profile or
// the catalogue does not allow it.
std::string OfferedAs(const gpu::Model& model, const std::string& resource);
// Whether GPUs of the model have a profile of exactly this name that the catalogue allows.
bool CanBeCutInto(const gpu::Model& model, const std::string& resource);
// "2 x 1g.5gb and 3g.20gb".
std::string SlicesText(const Translation& translation, const PodClass& cls);
// "500m cpu", "2Gi memory".
std::string AmountText(cluster::ResourceId id, int64_t amount);
// As kube-scheduler words it: "Insufficient cpu", "Too many pods".
std::string InsufficientText(cluster::ResourceId id);
// "mps" or "hybrid" where the node's owner has chosen that and no agent tells of such GPUs; or "".
std::string_view UntoldPartitioning(const cluster::Node& node);

// Who holds an instance, by the snapshot or by the plan in the making: "a/b", or "" if unknown.
std::string HolderOf(const Translation& translation, const StagedResult& result,
                     const SlotInTheWay& slot);
// "pod a/b (3g.20gb@4 of GPU 2), cpu or the like".
std::string InTheWayText(const Translation& translation, const StagedResult& result,
                         const FuturePlace& place);

}  // namespace nos::planning
