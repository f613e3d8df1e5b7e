// A typed-enough Kubernetes client over a Transport: objects stay JSON, errors become Status codes
// (404 kNotFound, 409 kConflict or kAlreadyExists, 410/429/5xx kUnavailable, 401/403 kPermission,
// 400/422 kInvalid). Holds no state; as thread-safe as its transport.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "kube/transport.h"

namespace nos::kube {

using codec::PathOf;
using codec::Resource;

// kEvents is the resource of the core group.
extern const Resource kPods, kNodes, kEvents, kLeases, kConfigMaps, kNamespaces;

// OK for 2xx; else the code listed above, with the message of the metav1.Status in the body.
Status StatusOf(const ApiResponse& response);

struct ListOptions {
  std::string label_selector, field_selector, resource_version;
  int limit = 500;  // page size; `continue` is followed to the end
};

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;
};

enum class PatchType { kMerge, kJson, kStrategic };

struct NamedPatch {
  std::string ns, name;  // of the object; the name is not empty
  Json patch;
};

class Client {
 public:
  explicit Client(Transport& transport) : transport_(transport) {}
  // The same client with a shorter time limit for each answer (kDeadline).
  Client Within(Duration patience) const;

  // Every call can also return the transport's errors.
  Result<Json> Get(const Resource& resource, std::string_view ns, std::string_view name);
  // `ns` empty: all namespaces. Items have no kind and apiVersion, because the API server omits
  // them in lists. If a page token expires midway, the whole list is read again in one piece.
  Result<ObjectList> List(const Resource& resource, std::string_view ns,
                          const ListOptions& options);
  // Like List, but visits each item as it arrives, so that no more than a page is held; read the
  // item at once. `begin` is called before the first item, and again if the list is read again.
  // Returns the list's resourceVersion.
  Result<std::string> ListEach(const Resource& resource, std::string_view ns,
                               const ListOptions& options, FunctionRef<void()> begin,
                               FunctionRef<void(JsonSource item)> visit);
  // Watches from `options.resource_version`, with bookmarks; `limit` is not used. An ERROR event
  // with code 410 means: list again.
  Result<std::unique_ptr<WatchStream>> Watch(const Resource& resource, std::string_view ns,
                                             const ListOptions& options);
  Result<Json> Create(const Resource& resource, std::string_view ns, const Json& object);
  // The name is taken from the object. A metadata.resourceVersion in it is a precondition
  // (kConflict).
  // `subresource`: "" or "status".
  Result<Json> Update(const Resource& resource, std::string_view ns, const Json& object,
                      std::string_view subresource = "");
  Result<Json> Patch(const Resource& resource, std::string_view ns, std::string_view name,
                     PatchType type, const Json& patch, std::string_view subresource = "");
  // Writes many objects of one resource concurrently; the answers are in the same order. A new
  // object carries its namespace in metadata.namespace.
  std::vector<Result<Json>> PatchAll(const Resource& resource, PatchType type,
                                     const std::vector<NamedPatch>& patches,
                                     std::string_view subresource = "");
  std::vector<Result<Json>> CreateAll(const Resource& resource, const std::vector<Json>& objects);
  // `options`: a metav1.DeleteOptions (gracePeriodSeconds, preconditions...), or null.
  Status Delete(const Resource& resource, std::string_view ns, std::string_view name,
                const Json& options = {});
  // POST pods/<name>/binding. Error: kConflict if the pod is bound already, or its uid differs from
  // the given one.
  Status Bind(std::string_view ns, std::string_view pod, std::string_view node,
              std::string_view uid = "");
  // POST pods/<name>/eviction, only for the pod with this uid. Error: kUnavailable if a disruption
  // budget forbids it now; kConflict if the pod has another uid. `grace_seconds`: absent: the pod's
  // own.
  Status Evict(std::string_view ns, std::string_view pod, std::string_view uid,
               std::optional<int64_t> grace_seconds = std::nullopt);
  // Sends a request that the caller has built.
  Result<Json> Send(const ApiRequest& request);

 private:
  Result<ApiResponse> Do(ApiRequest request);
  std::vector<Result<Json>> DoAll(std::vector<ApiRequest> requests);

  Transport& transport_;
  Duration patience_{};
};

}  // namespace nos::kube
