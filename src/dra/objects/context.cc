#include "dra/context.h"

#include <fmt/format.h>

#include <memory>
#include <type_traits>

namespace nos::dra {
namespace {

void SetDefaults(ExactRequest& request) {
  if (request.mode.empty()) request.mode = "ExactCount";
  if (request.mode == "ExactCount" && request.count == 0) request.count = 1;
}

// Sets the defaults that the API server sets when a claim is created.
void SetDefaults(ResourceClaim& claim) {
  if (claim.ns.empty()) claim.ns = "default";
  for (DeviceRequest& request : claim.requests) {
    if (request.exactly) SetDefaults(*request.exactly);
    for (ExactRequest& alternative : request.first_available) SetDefaults(alternative);
  }
}

}  // namespace

Result<bool> AddDevices(std::string_view api_version, std::string_view kind, const Json& object,
                        cluster::ClusterContext& to) {
  Result<bool> added = false;
  ForEachDeviceKind([&]<typename T>(const cluster::ContextKind& known,
                                    Status (*read)(JsonSource, T&),
                                    cluster::Table<T> cluster::ClusterContext::* table) {
    if (known.kind != kind) return;
    if (fmt::format("{}/{}", known.group, known.version) != api_version) return;
    T typed;
    if (const Status status = read(JsonSource(object), typed); !status.ok()) {
      added = status;
      return;
    }
    if constexpr (std::is_same_v<T, ResourceClaim>) SetDefaults(typed);
    std::string key(FindString(object, "metadata", "name"));
    if constexpr (std::is_same_v<T, ResourceClaim>) key = typed.Key();
    if ((to.*table).Find(key) != nullptr) {
      added = Invalid("is given twice; give every object once");
      return;
    }
    (to.*table).Set(key, std::make_shared<const T>(std::move(typed)));
    added = true;
  });
  return added;
}

}  // namespace nos::dra
