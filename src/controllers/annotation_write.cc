#include "controllers/annotation_write.h"

#include <utility>

namespace nos::controllers {

Result<Json> PatchNodeAnnotations(kube::Client& client, std::string_view node,
                                  const cluster::AnnotationPatch& patch,
                                  std::string_view resource_version) {
  JsonObject annotations;
  for (const auto& [key, value] : patch) {
    annotations[key] = value ? Json(*value) : Json(nullptr);
  }
  JsonObject metadata = {{"annotations", std::move(annotations)}};
  if (!resource_version.empty()) metadata["resourceVersion"] = resource_version;
  return client.Patch(kube::kNodes, "", node, kube::PatchType::kMerge,
                      JsonObject{{"metadata", std::move(metadata)}});
}

}  // namespace nos::controllers
