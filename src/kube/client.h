// A typed-enough Kubernetes client over a Transport: objects stay JSON, errors become Status codes
// (404 kNotFound, 409 kConflict or kAlreadyExists, 410/429/5xx kUnavailable, 401/403 kPermission,
// 400/422 kInvalid). Holds no state; as thread-safe as its transport.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/transport.h"

namespace nos::kube {

// A served resource. `group` is "" for core.
struct Resource {
  std::string group, version, plural, kind;
  bool namespaced = true;
};
extern const Resource kPods, kNodes, kEvents, kLeases, kConfigMaps, kNamespaces;

struct ListOptions {
  std::string label_selector, field_selector, resource_version;
  int limit = 500;  // page size; List() follows `continue` to the end
};

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;
};

enum class PatchType { kMerge, kJson, kStrategic };

class Client {
 public:
  explicit Client(Transport& transport) : transport_(transport) {}

  Result<Json> Get(const Resource& resource, std::string_view ns, std::string_view name);
  // `ns` empty: all namespaces.
  Result<ObjectList> List(const Resource& resource, std::string_view ns,
                          const ListOptions& options);
  Result<std::unique_ptr<WatchStream>> Watch(const Resource& resource, std::string_view ns,
                                             const ListOptions& options);
  Result<Json> Create(const Resource& resource, std::string_view ns, const Json& object);
  Result<Json> Update(const Resource& resource, std::string_view ns, const Json& object);
  // `subresource`: "" or "status".
  Result<Json> Patch(const Resource& resource, std::string_view ns, std::string_view name,
                     PatchType type, const Json& patch, std::string_view subresource = "");
  Status Delete(const Resource& resource, std::string_view ns, std::string_view name,
                const Json& options = {});
  // POST pods/<name>/binding. Error: kConflict when the pod is bound already.
  Status Bind(std::string_view ns, std::string_view pod, std::string_view node);

 private:
  Transport& transport_;
};

}  // namespace nos::kube
