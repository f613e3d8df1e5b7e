#include "kube/client.h"

#include <fmt/core.h>

#include <utility>

namespace nos::kube {

const Resource kPods{"", "v1", "pods", "Pod", true};
const Resource kNodes{"", "v1", "nodes", "Node", false};
const Resource kEvents{"", "v1", "events", "Event", true};
const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};

namespace {

constexpr int kGone = 410;

Code CodeOf(int http, std::string_view reason) {
  switch (http) {
    case 404:
      return Code::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? Code::kAlreadyExists : Code::kConflict;
    case 401:
    case 403:
      return Code::kPermission;
    case 405:
    case 501:
      return Code::kUnimplemented;
    case 408:
    case kGone:
    case 429:
      return Code::kUnavailable;
    default:
      return http >= 500 ? Code::kUnavailable : Code::kInvalid;
  }
}

std::string_view ContentTypeOf(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
  }
  return "application/merge-patch+json";
}

ApiRequest Request(std::string_view method, std::string path) {
  ApiRequest request;
  request.method = method;
  request.path = std::move(path);
  return request;
}

ApiRequest Write(std::string_view method, std::string path, const Json& body,
                 std::string_view content_type = "application/json") {
  ApiRequest request = Request(method, std::move(path));
  request.content_type = content_type;
  request.body = body;
  return request;
}

void AddSelectors(const ListOptions& options, ApiRequest& request) {
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) request.query.emplace_back(key, value);
  };
  add("labelSelector", options.label_selector);
  add("fieldSelector", options.field_selector);
}

// A continuation request carries only its token; resourceVersion belongs to the first page.
ApiRequest PageRequest(const Resource& resource, std::string_view ns, const ListOptions& options,
                       int limit, const std::string& token) {
  ApiRequest request = Request("GET", PathOf(resource, ns));
  AddSelectors(options, request);
  if (limit > 0) request.query.emplace_back("limit", std::to_string(limit));
  if (!token.empty()) {
    request.query.emplace_back("continue", token);
  } else if (!options.resource_version.empty()) {
    request.query.emplace_back("resourceVersion", options.resource_version);
  }
  return request;
}

struct Page {
  std::string resource_version, token;  // of the next page; empty: this is the last
};

Result<Page> ReadPage(const ApiResponse& response, FunctionRef<void(JsonSource)> visit) {
  Page page;
  bool listed = true;
  NOS_RETURN_IF_ERROR(ReadJson(response.json(), [&](Cursor& root) {
    if (root.kind() != Cursor::Kind::kObject) return void(listed = false);
    root.Members([&](std::string_view key, Cursor& value) {
      const Cursor::Kind kind = value.kind();
      if (key == "metadata" && kind == Cursor::Kind::kObject) {
        value.Members([&](std::string_view name, Cursor& member) {
          if (name == "resourceVersion") page.resource_version = StringOf(member);
          if (name == "continue") page.token = StringOf(member);
        });
      } else if (key == "items" && kind == Cursor::Kind::kArray) {
        value.Elements([&](Cursor& item) { visit(item); });
      } else if (key == "items" && kind != Cursor::Kind::kNull) {
        listed = false;
      }
    });
  }));
  if (!listed) return Invalid("the list's items are not an array");
  return page;
}

Result<Json> BodyOf(Result<ApiResponse> response) {
  if (!response.ok()) return response.status();
  NOS_RETURN_IF_ERROR(StatusOf(*response));
  if (response->text.empty()) return std::move(response->body);
  auto tree = ParseJson(response->text);
  if (!tree.ok()) {  // the request may have taken effect
    return Status(Code::kUnavailable, "the API server's answer: " + tree.status().message());
  }
  return tree;
}

}  // namespace

Status StatusOf(const ApiResponse& response) {
  if (response.code >= 200 && response.code < 300) return Status::Ok();
  const Result<Json> tree =
      TreeOf(response.json());  // a proxy in between may answer with something other than JSON
  const Json status = tree.ok() ? *tree : Json();
  std::string message(FindString(status, "message"));
  if (message.empty()) message = fmt::format("the API server answered {}", response.code);
  return {CodeOf(response.code, FindString(status, "reason")), std::move(message)};
}

Client Client::Within(Duration patience) const {
  Client client(transport_);
  client.patience_ = patience;
  return client;
}

Result<Json> Client::Get(const Resource& resource, std::string_view ns, std::string_view name) {
  if (name.empty()) return Invalid(fmt::format("get {}: the name is empty", resource.plural));
  return BodyOf(Do(Request("GET", PathOf(resource, ns, name))));
}

Result<ObjectList> Client::List(const Resource& resource, std::string_view ns,
                                const ListOptions& options) {
  ObjectList list;
  Status fault;
  const auto add = [&](JsonSource item) {
    auto tree = TreeOf(item);
    if (tree.ok()) {
      list.items.push_back(*std::move(tree));
    } else if (fault.ok()) {
      fault = tree.status();
    }
  };
  NOS_ASSIGN(list.resource_version,
             ListEach(resource, ns, options, [&] { list.items.clear(); }, add));
  NOS_RETURN_IF_ERROR(fault);
  return list;
}

Result<std::string> Client::ListEach(const Resource& resource, std::string_view ns,
                                     const ListOptions& options, FunctionRef<void()> begin,
                                     FunctionRef<void(JsonSource)> visit) {
  Page page;
  int limit = options.limit;
  begin();
  do {
    NOS_ASSIGN(ApiResponse response, Do(PageRequest(resource, ns, options, limit, page.token)));
    if (response.code == kGone && !page.token.empty()) {
      limit = 0;
      begin();
      NOS_ASSIGN(response, Do(PageRequest(resource, ns, options, limit, "")));
    }
    NOS_RETURN_IF_ERROR(StatusOf(response));
    NOS_ASSIGN(page, ReadPage(response, visit));
  } while (!page.token.empty());
  return page.resource_version;
}

Result<std::unique_ptr<WatchStream>> Client::Watch(const Resource& resource, std::string_view ns,
                                                   const ListOptions& options) {
  ApiRequest request = Request("GET", PathOf(resource, ns));
  AddSelectors(options, request);
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("allowWatchBookmarks", "true");
  if (!options.resource_version.empty()) {
    request.query.emplace_back("resourceVersion", options.resource_version);
  }
  return transport_.Watch(request);
}

Result<Json> Client::Create(const Resource& resource, std::string_view ns, const Json& object) {
  return BodyOf(Do(Write("POST", PathOf(resource, ns), object)));
}

Result<Json> Client::Update(const Resource& resource, std::string_view ns, const Json& object,
                            std::string_view subresource) {
  const std::string_view name = FindString(object, "metadata", "name");
  if (name.empty()) return Invalid(fmt::format("update {}: no metadata.name", resource.plural));
  return BodyOf(Do(Write("PUT", PathOf(resource, ns, name, subresource), object)));
}

Result<Json> Client::Patch(const Resource& resource, std::string_view ns, std::string_view name,
                           PatchType type, const Json& patch, std::string_view subresource) {
  if (name.empty()) return Invalid(fmt::format("patch {}: the name is empty", resource.plural));
  return BodyOf(
      Do(Write("PATCH", PathOf(resource, ns, name, subresource), patch, ContentTypeOf(type))));
}

std::vector<Result<Json>> Client::PatchAll(const Resource& resource, PatchType type,
                                           const std::vector<NamedPatch>& patches,
                                           std::string_view subresource) {
  std::vector<ApiRequest> requests;
  requests.reserve(patches.size());
  for (const NamedPatch& patch : patches) {
    requests.push_back(Write("PATCH", PathOf(resource, patch.ns, patch.name, subresource),
                             patch.patch, ContentTypeOf(type)));
  }
  return DoAll(std::move(requests));
}

std::vector<Result<Json>> Client::CreateAll(const Resource& resource,
                                            const std::vector<Json>& objects) {
  std::vector<ApiRequest> requests;
  requests.reserve(objects.size());
  for (const Json& object : objects) {
    const std::string_view ns = FindString(object, "metadata", "namespace");
    requests.push_back(Write("POST", PathOf(resource, ns), object));
  }
  return DoAll(std::move(requests));
}

Result<ApiResponse> Client::Do(ApiRequest request) {
  request.patience = patience_;
  return transport_.Do(request);
}

std::vector<Result<Json>> Client::DoAll(std::vector<ApiRequest> requests) {
  for (ApiRequest& request : requests) request.patience = patience_;
  std::vector<Result<Json>> objects;
  objects.reserve(requests.size());
  for (Result<ApiResponse>& answer : transport_.DoAll(requests)) {
    objects.push_back(BodyOf(std::move(answer)));
  }
  return objects;
}

Status Client::Delete(const Resource& resource, std::string_view ns, std::string_view name,
                      const Json& options) {
  if (name.empty()) return Invalid(fmt::format("delete {}: the name is empty", resource.plural));
  return BodyOf(Do(Write("DELETE", PathOf(resource, ns, name), options))).status();
}

Result<Json> Client::Send(const ApiRequest& request) { return BodyOf(Do(request)); }

Status Client::Bind(std::string_view ns, std::string_view pod, std::string_view node,
                    std::string_view uid) {
  Json binding = {{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", {{"name", pod}, {"namespace", ns}}},
                  {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  if (!uid.empty()) MakeObject(binding, "metadata")["uid"] = uid;
  return BodyOf(Do(Write("POST", PathOf(kPods, ns, pod, "binding"), binding))).status();
}

Status Client::Evict(std::string_view ns, std::string_view pod, std::string_view uid,
                     std::optional<int64_t> grace_seconds) {
  Json options = {{"preconditions", {{"uid", uid}}}};
  if (grace_seconds) options.get_object()["gracePeriodSeconds"] = *grace_seconds;
  const Json eviction = {{"apiVersion", "policy/v1"},
                         {"kind", "Eviction"},
                         {"metadata", {{"name", pod}, {"namespace", ns}}},
                         {"deleteOptions", std::move(options)}};
  return BodyOf(Do(Write("POST", PathOf(kPods, ns, pod, "eviction"), eviction))).status();
}

}  // namespace nos::kube
