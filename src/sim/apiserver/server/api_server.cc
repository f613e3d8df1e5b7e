#include "sim/api_server.h"

#include <fmt/format.h>

#include "base/log.h"
#include "kube/client.h"
#include "sim/apiserver/encoding/convert.h"
#include "sim/apiserver/encoding/discovery.h"
#include "sim/apiserver/objects/api_path.h"
#include "sim/apiserver/objects/tree.h"
#include "sim/apiserver/patching/patch_json.h"
#include "sim/apiserver/patching/patch_merge.h"
#include "sim/apiserver/patching/patch_strategic.h"
#include "sim/apiserver/printing/log.h"
#include "sim/apiserver/printing/render.h"
#include "sim/apiserver/schemas/custom_rules.h"
#include "sim/apiserver/schemas/scale.h"
#include "sim/apiserver/schemas/shape.h"
#include "sim/apiserver/schemas/unknown.h"
#include "sim/apiserver/storage/delete.h"
#include "sim/apiserver/storage/list.h"
#include "sim/apiserver/storage/pods.h"
#include "sim/apiserver/storage/request_options.h"

namespace nos::sim {

using kube::ApiRequest;
using kube::ApiResponse;

namespace {

constexpr size_t kMaxManagerName = 128;  // limit of the real server

// A parsed request to a resource.
struct Call {
  const ApiRequest& request;
  ApiPath path;
  TypeRef type;    // the requested version
  TypeRef stored;  // the version of the stored form
  View view;
  WriteRequest write;
  FieldValidation validation = FieldValidation::kWarn;
  std::vector<std::string> warnings = {};
};

Refusal UnsupportedPatch(std::string_view content_type) {
  return MakeRefusal(
      415, "UnsupportedMediaType",
      fmt::format(
          "the body of the request was in an unknown format ({}) - accepted media types include: "
          "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
          content_type));
}

// A specific message instead of a bare 404 for subresources that need running containers.
Refusal UnknownSubresource(const ApiPath& path) {
  const std::string& sub = path.subresource;
  if (path.plural == "pods" && (sub == "exec" || sub == "attach" || sub == "portforward")) {
    return BadRequest(fmt::format(
        "pod \"{}\" is simulated: no program runs in it, so there is nothing to {}", path.name,
        sub == "exec"     ? "execute a command in"
        : sub == "attach" ? "attach to"
                          : "connect to"));
  }
  Refusal refusal = UnknownPath();
  refusal.message = fmt::format(
      "this simulated API server does not serve {}/{}: it stores objects and runs no containers "
      "and no controllers",
      path.plural, path.subresource);
  refusal.group = path.group;
  refusal.kind = path.plural;
  refusal.name = path.name;
  return refusal;
}

Refusal UnknownResource(const ApiPath& path) {
  Refusal refusal = UnknownPath();
  refusal.message += fmt::format(": this simulated API server does not serve {}{}{}", path.plural,
                                 path.group.empty() ? "" : ".", path.group);
  refusal.group = path.group;
  refusal.kind = path.plural;
  refusal.name = path.name;
  return refusal;
}

bool IsServed(const Call& call) {
  const std::string& sub = call.path.subresource;
  if (sub.empty()) return true;
  if (sub == "binding" || sub == "eviction" || sub == "log") return call.type->IsCore("pods");
  if (sub == "status") return call.type->has_status;
  if (sub == "scale") return call.type->HasScale();
  // Finalizing a namespace is an ordinary update here.
  return sub == "finalize" && call.type->storage == kNamespaceStorage;
}

bool IsTrue(const std::string& text) { return text == "true" || text == "1"; }

std::string_view MediaType(std::string_view content_type) {
  return content_type.substr(0, content_type.find(';'));
}

}  // namespace

class ApiServer::Impl {
 public:
  Impl(const Clock& clock, const ApiServerOptions& options)
      : hub_(std::make_shared<WatchHub>(options.history, options.history_bytes)),
        state_{clock, hub_, Store(hub_, options.seed), TypeRegistry(), options.max_objects} {
    for (const char* name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
      Bootstrap("namespaces", "", {{"metadata", {{"name", name}}}});
    }
    // Priority classes that every cluster has (k8s.io/kubernetes/pkg/apis/scheduling).
    for (const auto& [name, value] : {std::pair("system-cluster-critical", 2'000'000'000),
                                      std::pair("system-node-critical", 2'000'001'000)}) {
      Bootstrap("priorityclasses", "scheduling.k8s.io",
                {{"metadata", {{"name", name}}}, {"value", value}});
    }
  }
  ~Impl() { hub_->CloseAll(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  PodAdmission& admission() { return admission_; }
  Time Now() const { return state_.clock.Now(); }

  ApiResponse Serve(const ApiRequest& request) {
    const auto path = ParseApiPath(request.path);
    if (!path) return Describe(request);
    const PodAdmission::Outcome admitted = admission_.Admit(*path, request, [&] {
      const std::lock_guard lock(mutex_);
      return state_.store.Get({kPodStorage, {path->ns, path->name}}) != nullptr;
    });
    if (admitted.refusal) return ToResponse(*admitted.refusal);
    ApiResponse response = ServeAdmitted(admitted.changed ? *admitted.changed : request);
    for (const std::string& warning : admitted.warnings) response.warnings.push_back(warning);
    return response;
  }

  ApiResponse ServeAdmitted(const ApiRequest& request) {
    auto call = Understand(request);
    if (!call.ok()) return ToResponse(call.status());
    if (call->path.name.empty() && request.method == "GET") return List(*call);
    const std::lock_guard lock(mutex_);
    RemoveExpired(state_);
    auto answer = Perform(*call);
    return answer.ok() ? std::move(*answer) : ToResponse(answer.status());
  }

  Check CheckAddress(const ApiRequest& request) const {
    if (!ParseApiPath(request.path)) return std::nullopt;  // not a resource: Describe answers
    const auto call = Understand(request);
    if (!call.ok()) return call.status();
    return IsServed(*call) ? Check() : UnknownSubresource(call->path);
  }

  Outcome<std::unique_ptr<WatchSubscription>> Open(const ApiRequest& request) {
    NOS_ASSIGN(Call call, Understand(request));
    if (!call.path.subresource.empty()) return UnknownSubresource(call.path);
    if (auto refusal = CheckReadOptions(request, /*watch=*/true)) return *refusal;
    ApiRequest asked = request;
    if (!call.path.name.empty()) {
      asked.query.emplace_back("fieldSelector", "metadata.name=" + call.path.name);
    }
    NOS_ASSIGN(Selection selection, ParseSelection(*call.type, call.path.ns, asked));
    NOS_ASSIGN(const uint64_t version, ParseVersion(request.Query("resourceVersion")));
    const std::string initial = request.Query("sendInitialEvents");
    const std::lock_guard lock(mutex_);
    RemoveExpired(state_);
    const uint64_t current = state_.store.version();
    if (version > current) return TooLargeVersion(version, current);
    WatchSpec spec;
    spec.storage = call.type->storage;
    spec.version = version;
    spec.bookmarks = IsTrue(request.Query("allowWatchBookmarks"));
    spec.bookmark = {{"kind", call.type->kind}, {"apiVersion", call.type->ApiVersion()}};
    if (version == 0 || initial == "true") {
      spec.version = current;
      spec.bookmark_after_initial = initial == "true";
      if (initial != "false") AddInitial(selection, spec);
    }
    spec.matches = [selection](const Json& object) {
      const bool inside =
          selection.ns.empty() || FindString(object, "metadata", "namespace") == selection.ns;
      return inside && selection.Matches(object);
    };
    spec.present = [type = call.type, view = call.view, &clock = state_.clock](const Json& object) {
      return RenderObject(*type, view, object,
                          view.form == View::Form::kTable ? clock.Now() : Time());
    };
    return std::make_unique<WatchSubscription>(hub_, std::move(spec));
  }

 private:
  void Bootstrap(std::string_view plural, std::string_view group, Json object) {
    WriteRequest write;
    write.type = state_.types.Find(group, "v1", plural);
    write.manager = {"nos", "", write.type->ApiVersion(), state_.clock.Now()};
    (void)CheckEnvelope(*write.type, "", object);
    (void)CreateObject(state_, write, std::move(object));
  }

  void AddInitial(const Selection& selection, WatchSpec& spec) const {
    const Objects& objects = state_.store.All(spec.storage);
    for (auto i = objects.lower_bound({selection.ns, ""}); i != objects.end(); ++i) {
      if (!selection.ns.empty() && i->first.ns != selection.ns) break;
      if (selection.Matches(*i->second)) spec.initial.push_back(i->second);
    }
  }

  ApiResponse Describe(const ApiRequest& request) const {
    if (request.method != "GET") return ToResponse(MethodNotAllowed(request.method));
    const std::lock_guard lock(mutex_);
    auto answer = Discover(state_.types, request.path);
    return answer ? ApiResponse{200, std::move(*answer)} : ToResponse(UnknownPath());
  }

  Outcome<Call> Understand(const ApiRequest& request) const {
    const auto path = ParseApiPath(request.path);
    if (!path) return UnknownPath();
    const std::lock_guard lock(mutex_);
    // POST to the collection "bindings" is the older way to bind a pod.
    const bool binds = path->plural == "bindings" && path->group.empty() && path->name.empty();
    const TypeRef type =
        state_.types.Find(path->group, path->version, binds ? "pods" : path->plural);
    if (type == nullptr) return UnknownResource(*path);
    const bool misplaced = (!type->namespaced && !path->ns.empty()) ||
                           (type->namespaced && path->ns.empty() && !path->name.empty());
    if (misplaced) return UnknownPath();
    Call call{request, *path, type, state_.types.OfStorage(type->storage), ViewOf(request), {}};
    if (binds) {
      call.path.plural = "pods";
      call.path.subresource = "binding";
      call.path.name = FindString(request.body, "metadata", "name");
    }
    call.write.type = type;
    call.write.key = {path->ns, call.path.name};
    call.write.subresource = call.path.subresource;
    if (request.method != "GET") {
      NOS_ASSIGN(const WriteOptions options, ParseWriteOptions(request));
      call.write.dry_run = options.dry_run;
      call.validation = options.validation;
    }
    const std::string manager = request.Query("fieldManager");
    call.write.manager = {manager.empty() ? "nos" : manager.substr(0, kMaxManagerName),
                          call.path.subresource, type->ApiVersion(), state_.clock.Now()};
    return call;
  }

  ApiResponse List(const Call& call) {
    const auto selection = ParseSelection(*call.type, call.path.ns, call.request);
    if (!selection.ok()) return ToResponse(selection.status());
    const auto listing = [&] {
      const std::lock_guard lock(mutex_);
      RemoveExpired(state_);
      return ListObjects(state_, *call.type, *selection, call.request);
    }();
    if (!listing.ok()) return ToResponse(listing.status());
    // Objects are immutable, so copying needs no lock.
    return {200, RenderList(*call.type, call.view, listing->objects, listing->metadata,
                            call.write.manager.now)};
  }

  Outcome<ApiResponse> Perform(Call& call) {
    const std::string& method = call.request.method;
    const std::string& sub = call.path.subresource;
    if (!IsServed(call)) return UnknownSubresource(call.path);
    if (sub == "binding" || sub == "eviction") return PodAction(call);
    if (sub == "scale") return Scale(call);
    if (sub == "log") return Log(call);
    if (call.path.name.empty()) {
      if (method == "POST") return Create(call);
      if (method == "DELETE") return DeleteCollection(call);
      return MethodNotAllowed(method);
    }
    if (method == "GET") return Get(call);
    if (method == "PUT") return Update(call);
    if (method == "PATCH") return Patch(call);
    if (method == "DELETE" && sub.empty()) return Delete(call);
    return MethodNotAllowed(method);
  }

  ApiResponse Show(const Call& call, const Json& stored, int code = 200) const {
    return {code, RenderObject(*call.type, call.view, stored, call.write.manager.now),
            call.warnings};
  }

  static void WarnOfUnapplied(Call& call, const Json& definition) {
    if (call.type->storage != kDefinitionStorage || !call.path.subresource.empty()) return;
    for (std::string& rule : UnappliedRules(definition)) call.warnings.push_back(std::move(rule));
  }

  // Removes unknown fields from the object and checks its envelope.
  static Check Decode(Call& call, Json& object) {
    if (auto refusal = CheckEnvelope(*call.type, call.path.ns, object)) return refusal;
    const auto unknown = PruneUnknown(*call.type, object);
    if (auto refusal = CheckFaults(*call.type, call.validation,
                                   FaultsOf(call.request.duplicate_keys, unknown), call.warnings)) {
      return refusal;
    }
    WarnOfUnapplied(call, object);
    return std::nullopt;
  }

  ObjectRef Current(const Call& call) const {
    return state_.store.Get({call.type->storage, call.write.key});
  }

  Outcome<ApiResponse> Get(const Call& call) const {
    const ObjectRef object = Current(call);
    if (object == nullptr) return ObjectNotFound(*call.type, call.path.name);
    return Show(call, *object);
  }

  Outcome<ApiResponse> Create(Call& call) {
    if (call.type->namespaced && call.path.ns.empty()) return MethodNotAllowed("POST");
    Json object = call.request.body;
    if (auto refusal = Decode(call, object)) return *refusal;
    ToStored(*call.type, *call.stored, object);
    NOS_ASSIGN(const ObjectRef created, CreateObject(state_, call.write, std::move(object)));
    return Show(call, *created, 201);
  }

  Outcome<ApiResponse> Update(Call& call) {
    Json object = call.request.body;
    if (auto refusal = Decode(call, object)) return *refusal;
    return Replace(call, std::move(object));
  }

  Outcome<ApiResponse> Replace(const Call& call, Json object) {
    ToStored(*call.type, *call.stored, object);
    NOS_ASSIGN(const ObjectRef updated, UpdateObject(state_, call.write, std::move(object)));
    return Show(call, *updated);
  }

  Outcome<ApiResponse> Patch(Call& call) {
    const std::string_view media = MediaType(call.request.content_type);
    if (auto refusal = CheckSize(call.request.body)) return *refusal;
    if (media == "application/apply-patch+yaml" || media == "application/apply-patch+json") {
      return Apply(call);
    }
    const ObjectRef current = Current(call);
    if (current == nullptr) return ObjectNotFound(*call.type, call.path.name);
    Json object = FromStored(*call.type, *current);
    if (auto refusal = ChangeByPatch(call, object)) return *refusal;
    if (auto refusal = Decode(call, object)) return *refusal;
    return Replace(call, std::move(object));
  }

  // All kinds of patch except apply.
  static Check ChangeByPatch(const Call& call, Json& object) {
    const std::string_view media = MediaType(call.request.content_type);
    const Json& patch = call.request.body;
    if (media == "application/merge-patch+json") {
      if (!patch.is_object()) return BadRequest("a merge patch is an object");
      MergePatch(object, patch);
      return std::nullopt;
    }
    if (media == "application/json-patch+json") return JsonPatch(object, patch);
    if (media == "application/strategic-merge-patch+json" && call.type->custom == nullptr) {
      return StrategicPatch(object, patch, MergeRules(*call.type));
    }
    return UnsupportedPatch(media);
  }

  // The scale subresource: a view of the object as another kind.
  Outcome<ApiResponse> Scale(const Call& call) {
    const std::string& method = call.request.method;
    const ObjectRef current = Current(call);
    if (current == nullptr) return ObjectNotFound(*call.type, call.path.name);
    NOS_ASSIGN(Json scale, ScaleOf(*call.type, *current));
    if (method == "GET") return ApiResponse{200, std::move(scale)};
    if (auto refusal = CheckSize(call.request.body)) return *refusal;
    if (method == "PUT") {
      scale = call.request.body;
    } else if (method == "PATCH") {
      if (auto refusal = ChangeByPatch(call, scale)) return *refusal;
    } else {
      return MethodNotAllowed(method);
    }
    Json object = *current;
    if (auto refusal = PutScale(*call.type, scale, object)) return *refusal;
    NOS_ASSIGN(const ObjectRef updated, UpdateObject(state_, call.write, std::move(object)));
    NOS_ASSIGN(scale, ScaleOf(*call.type, *updated));
    return ApiResponse{200, std::move(scale)};
  }

  Outcome<ApiResponse> Apply(Call& call) {
    const std::string named = call.request.Query("fieldManager");
    if (named.empty())
      return BadRequest("fieldManager: Required value: is required for apply patch");
    Json config = call.request.body;
    if (auto refusal = CheckEnvelope(*call.type, call.path.ns, config)) return *refusal;
    if (Find(config, "metadata", "managedFields") != nullptr) {
      return BadRequest("metadata.managedFields must be nil");
    }
    if (call.path.subresource != "status" && call.type->has_status) {
      config.get_object().erase("status");
    }
    MakeObject(config, "metadata")["name"] = call.path.name;
    // An unknown field cannot have a manager, so no fieldValidation accepts it.
    if (const auto unknown = PruneUnknown(*call.type, config); !unknown.empty()) {
      return UntypedConfig(*call.type, config,
                           fmt::format(".{}: field not declared in schema", unknown[0]));
    }
    if (auto refusal = CheckFaults(*call.type, call.validation,
                                   FaultsOf(call.request.duplicate_keys, {}), call.warnings)) {
      return *refusal;
    }
    const ObjectRef current = Current(call);
    if (current == nullptr && !call.path.subresource.empty()) {
      return ObjectNotFound(*call.type, call.path.name);
    }
    const Json live = current == nullptr ? Json() : FromStored(*call.type, *current);
    NOS_ASSIGN(Json merged,
               ApplyConfig(*call.type, live, config, IsTrue(call.request.Query("force")),
                           call.write.manager, MergeRules(*call.type)));
    call.write.applied = true;
    WarnOfUnapplied(call, merged);
    if (current != nullptr) return Replace(call, std::move(merged));
    ToStored(*call.type, *call.stored, merged);
    NOS_ASSIGN(const ObjectRef created, CreateObject(state_, call.write, std::move(merged)));
    return Show(call, *created, 201);
  }

  Outcome<ApiResponse> Delete(const Call& call) {
    NOS_ASSIGN(const DeleteOptions options, ParseDeleteOptions(call.request));
    NOS_ASSIGN(const Deletion deletion, DeleteObject(state_, call.write, options));
    if (!deletion.gone || call.type->returns_deleted) return Show(call, *deletion.object);
    return ApiResponse{200, SuccessStatus(call.type->group, call.type->plural, call.path.name,
                                          FindString(*deletion.object, "metadata", "uid"))};
  }

  Outcome<ApiResponse> DeleteCollection(const Call& call) {
    NOS_ASSIGN(const DeleteOptions options, ParseDeleteOptions(call.request));
    NOS_ASSIGN(const Selection selection, ParseSelection(*call.type, call.path.ns, call.request));
    NOS_ASSIGN(const Listing listing, ListObjects(state_, *call.type, selection, call.request));
    for (const ObjectRef& object : listing.objects) {
      WriteRequest write = call.write;
      write.key = {std::string(FindString(*object, "metadata", "namespace")),
                   std::string(FindString(*object, "metadata", "name"))};
      auto deletion = DeleteObject(state_, write, options);
      // An object that an earlier deletion of this collection removed is not a failure.
      if (!deletion.ok() && deletion.status().code != 404) return deletion.status();
    }
    return ApiResponse{200, RenderList(*call.type, call.view, listing.objects, listing.metadata,
                                       call.write.manager.now)};
  }

  Outcome<ApiResponse> Log(const Call& call) const {
    if (call.request.method != "GET") return MethodNotAllowed(call.request.method);
    const ObjectRef pod = Current(call);
    if (pod == nullptr) return ObjectNotFound(*call.type, call.path.name);
    NOS_ASSIGN(const LogOptions options, ParseLogOptions(call.request, call.write.manager.now));
    NOS_ASSIGN(const ContainerLog log, LogOf(*pod, options));
    std::string text = LogText(log, FirstLine(log, options), options);
    if (options.limit_bytes && static_cast<int64_t>(text.size()) > *options.limit_bytes) {
      text.resize(static_cast<size_t>(*options.limit_bytes));
    }
    return ApiResponse{200, Json(std::move(text))};
  }

  Outcome<ApiResponse> PodAction(const Call& call) {
    if (call.request.method != "POST") return MethodNotAllowed(call.request.method);
    if (!call.request.body.is_object()) return BadRequest("the body must be a JSON object");
    if (auto refusal = CheckSize(call.request.body)) return *refusal;
    const bool binds = call.path.subresource == "binding";
    if (auto refusal = CheckShape(binds ? "Binding" : "Eviction", call.request.body)) {
      return *refusal;
    }
    if (binds) {
      auto bound = BindPod(state_, call.write, call.request.body);
      if (!bound.ok()) return bound.status();
    } else {
      auto evicted = EvictPod(state_, call.write, call.request.body);
      if (!evicted.ok()) return evicted.status();
    }
    return ApiResponse{201, SuccessStatus("", "pods", call.path.name, "")};
  }

  mutable std::mutex mutex_;
  const std::shared_ptr<WatchHub> hub_;
  ApiState state_;
  PodAdmission admission_;
};

ApiServer::ApiServer(const Clock& clock, const ApiServerOptions& options)
    : impl_(std::make_unique<Impl>(clock, options)) {}

ApiServer::~ApiServer() = default;

Result<ApiResponse> ApiServer::Do(const ApiRequest& request) { return impl_->Serve(request); }

Time ApiServer::Now() const { return impl_->Now(); }

void ApiServer::SetPodWebhook(PodWebhook webhook) { impl_->admission().Set(std::move(webhook)); }

std::optional<ApiResponse> ApiServer::CheckAddress(const ApiRequest& request) {
  const Check refusal = impl_->CheckAddress(request);
  return refusal ? std::optional(ToResponse(*refusal)) : std::nullopt;
}

std::variant<std::unique_ptr<WatchSubscription>, ApiResponse> ApiServer::OpenWatch(
    const ApiRequest& request) {
  auto watch = impl_->Open(request);
  if (!watch.ok()) return ToResponse(watch.status());
  return std::move(*watch);
}

Result<std::unique_ptr<kube::WatchStream>> ApiServer::Watch(const ApiRequest& request) {
  auto watch = OpenWatch(request);
  if (auto* refused = std::get_if<ApiResponse>(&watch)) return kube::StatusOf(*refused);
  return std::unique_ptr<kube::WatchStream>(
      std::move(std::get<std::unique_ptr<WatchSubscription>>(watch)));
}

}  // namespace nos::sim
