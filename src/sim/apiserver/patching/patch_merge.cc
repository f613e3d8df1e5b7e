#include "sim/apiserver/patching/patch_merge.h"

namespace nos::sim {

void MergePatch(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target.emplace_object();
  JsonObject& object = target.get_object();
  for (const auto& [key, value] : patch.get_object()) {
    if (value.is_null()) {
      object.erase(key);
    } else {
      MergePatch(object[key], value);
    }
  }
}

}  // namespace nos::sim
