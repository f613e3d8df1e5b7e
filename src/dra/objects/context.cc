#include "dra/context.h"

#include <fmt/format.h>

#include <memory>

namespace nos::dra {

Result<bool> AddDevices(std::string_view api_version, std::string_view kind, const Json& object,
                        cluster::ClusterContext& to) {
  Result<bool> added = false;
  ForEachDeviceKind([&]<typename T>(const cluster::ContextKind& known,
                                    Status (*read)(JsonSource, T&),
                                    cluster::Table<T> cluster::ClusterContext::* table) {
    if (known.kind != kind) return;
    if (fmt::format("{}/{}", known.group, known.version) != api_version) return;
    T read_object;
    if (const Status status = read(JsonSource(object), read_object); !status.ok()) {
      added = status;
      return;
    }
    std::string key(FindString(object, "metadata", "name"));
    if (known.namespaced) {
      const std::string_view ns = FindString(object, "metadata", "namespace");
      key = fmt::format("{}/{}", ns.empty() ? "default" : ns, key);
    }
    if ((to.*table).Find(key) != nullptr) {
      added = Invalid("is given twice; give every object once");
      return;
    }
    (to.*table).Set(key, std::make_shared<const T>(std::move(read_object)));
    added = true;
  });
  return added;
}

}  // namespace nos::dra
