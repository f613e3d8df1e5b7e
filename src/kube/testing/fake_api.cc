#include "kube/testing/fake_api.h"

#include <algorithm>

#include "base/text.h"
#include "kube/cache.h"

namespace nos::kube {
namespace {

struct Address {
  std::string plural, ns, name, subresource;
  std::string Key() const { return ns.empty() ? name : ns + "/" + name; }
};

std::string KeyOf(const Json& object) {
  return kube::KeyOf(FindString(object, "metadata", "namespace"),
                     FindString(object, "metadata", "name"));
}

// Parses "/api/v1/namespaces/a/pods/b/status" and the like.
Address ParsePath(std::string_view path) {
  std::vector<std::string_view> parts = Split(path, '/');
  parts.erase(parts.begin(), parts.begin() + (parts.at(1) == "api" ? 3 : 4));
  Address address;
  if (parts.size() > 2 && parts[0] == "namespaces") {
    address.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  address.plural = parts.at(0);
  if (parts.size() > 1) address.name = parts[1];
  if (parts.size() > 2) address.subresource = parts[2];
  return address;
}

ApiResponse Failure(int code, std::string_view reason, std::string_view message) {
  return {code, {{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}};
}

bool Selected(const Json& object, std::string_view selector) {
  if (selector.empty()) return true;
  const size_t equals = selector.find('=');
  const std::string_view field = selector.substr(0, equals);
  const std::string_view actual = field == "spec.nodeName" ? FindString(object, "spec", "nodeName")
                                                           : FindString(object, "metadata", "name");
  return actual == selector.substr(equals + 1);
}

// True if the pod has all labels of the budget's matchLabels.
bool CoversByLabels(const Json& budget, const Json& pod) {
  const Json* labels = Find(budget, "spec", "selector", "matchLabels");
  if (labels == nullptr || !labels->is_object()) return false;
  return std::ranges::all_of(labels->get_object(), [&](const auto& label) {
    const std::string_view wanted = View(label.value().get_string());
    return FindString(pod, "metadata", "labels", std::string_view(label.key())) == wanted;
  });
}

void Merge(Json& target, const Json& patch, bool strategic);

void MergeLists(JsonArray& target, const JsonArray& patch, std::string_view by) {
  for (const Json& item : patch) {
    const auto same = std::find_if(target.begin(), target.end(), [&](const Json& known) {
      return FindString(known, by) == FindString(item, by);
    });
    if (same == target.end()) {
      target.push_back(item);
    } else {
      Merge(*same, item, true);
    }
  }
}

void Merge(Json& target, const Json& patch, bool strategic) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = JsonObject();
  for (const auto& [key, value] : patch.get_object()) {
    Json& member = target.get_object()[key];
    if (value.is_null()) {
      target.get_object().erase(key);
    } else if (strategic && key == "conditions" && member.is_array()) {
      MergeLists(member.get_array(), value.get_array(), "type");
    } else if (strategic && key == "webhooks" && member.is_array()) {
      MergeLists(member.get_array(), value.get_array(), "name");
    } else {
      Merge(member, value, strategic);
    }
  }
}

}  // namespace

class FakeApi::Reader final : public WatchStream {
 public:
  explicit Reader(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  std::optional<WatchEvent> Next() override {
    if (stream_->events.empty()) return std::nullopt;
    WatchEvent event = std::move(stream_->events.front());
    stream_->events.pop_front();
    return event;
  }
  bool Ended() const override { return stream_->ended && stream_->events.empty(); }
  void OnReady(std::function<void()>) override {}

 private:
  std::shared_ptr<Stream> stream_;
};

Result<ApiResponse> FakeApi::Do(const ApiRequest& request) {
  if (request.method != "GET") writes.push_back(request);
  if (intercept) {
    if (std::optional<Result<ApiResponse>> answer = intercept(request)) return *answer;
  }
  if (const auto kinds = discovery.find(request.path); kinds != discovery.end()) {
    return ApiResponse{200, kinds->second};
  }
  const auto slashes = std::ranges::count(request.path, '/');
  if (slashes == 2 || (slashes == 3 && request.path.starts_with("/apis/"))) {  // discovery
    return Failure(404, "NotFound", request.path + " is not served");
  }
  const Address address = ParsePath(request.path);
  const auto known = objects_.find({address.plural, address.Key()});
  if (request.method == "GET" && address.name.empty()) return List(address.plural, request);
  if (address.subresource == "eviction") return Evict(address.ns, address.name, request);
  if (request.method == "POST") return Post(address.plural, address.ns, address.name, request);
  if (known == objects_.end()) return Failure(404, "NotFound", address.Key() + " not found");
  if (address.subresource == "scale") return Scale(address.plural, known->second, request);
  if (request.method == "GET") return ApiResponse{200, known->second};
  if (request.method == "PATCH") return Patch(address.plural, address.Key(), request);
  if (request.method == "PUT") return Replace(address.plural, known->second, request);
  Remove(address.plural, address.Key());
  return ApiResponse{200, {{"kind", "Status"}, {"status", "Success"}}};
}

ApiResponse FakeApi::List(const std::string& plural, const ApiRequest& request) const {
  JsonArray items;
  for (const Json& object : All(plural)) {
    if (Selected(object, request.Query("fieldSelector"))) items.push_back(object);
  }
  return {
      200,
      {{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", std::move(items)}}};
}

ApiResponse FakeApi::Post(const std::string& plural, const std::string& ns, const std::string& name,
                          const ApiRequest& request) {
  if (!name.empty()) {  // pods/<name>/binding
    const auto pod = objects_.find({plural, ns + "/" + name});
    if (pod == objects_.end()) return Failure(404, "NotFound", "no such pod");
    if (!FindString(pod->second, "spec", "nodeName").empty()) {
      return Failure(409, "Conflict", "the pod is bound already");
    }
    Json bound = pod->second;
    MakeObject(bound, "spec")["nodeName"] = FindString(request.body, "target", "name");
    return Store(plural, std::move(bound), "MODIFIED");
  }
  Json object = request.body;
  if (!ns.empty()) MakeObject(object, "metadata")["namespace"] = ns;
  if (objects_.contains({plural, KeyOf(object)})) {
    return Failure(409, "AlreadyExists", "it exists already");
  }
  return Store(plural, std::move(object), "ADDED");
}

ApiResponse FakeApi::Evict(const std::string& ns, const std::string& name,
                           const ApiRequest& request) {
  const Json* pod = Find("pods", ns + "/" + name);
  if (pod == nullptr) return Failure(404, "NotFound", "no such pod");
  const std::string_view uid = FindString(request.body, "deleteOptions", "preconditions", "uid");
  if (!uid.empty() && uid != FindString(*pod, "metadata", "uid")) {
    return Failure(409, "Conflict", "the uid in the precondition is not that of the pod");
  }
  for (Json& budget : All("poddisruptionbudgets")) {
    if (FindString(budget, "metadata", "namespace") != ns || !CoversByLabels(budget, *pod))
      continue;
    const Json* allowed = nos::Find(budget, "status", "disruptionsAllowed");
    const int64_t left = allowed != nullptr && allowed->is_int64() ? allowed->get_int64() : 0;
    if (left <= 0) return Failure(429, "TooManyRequests", "it would violate the pod's budget");
    MakeObject(budget, "status")["disruptionsAllowed"] = left - 1;
    Store("poddisruptionbudgets", std::move(budget), "MODIFIED");
  }
  if (evicted_end_at.empty()) {
    Remove("pods", ns + "/" + name);
  } else {
    Json ending = *pod;
    MakeObject(ending, "metadata")["deletionTimestamp"] = evicted_end_at;
    Store("pods", std::move(ending), "MODIFIED");
  }
  return {201, {{"kind", "Status"}, {"status", "Success"}}};
}

ApiResponse FakeApi::Patch(const std::string& plural, const std::string& key,
                           const ApiRequest& request) {
  Json object = objects_.at({plural, key});
  for (const char* field : {"resourceVersion", "uid"}) {
    const std::string_view expected = FindString(request.body, "metadata", field);
    if (!expected.empty() && expected != FindString(object, "metadata", field)) {
      return Failure(409, "Conflict", "the object has been modified");
    }
  }
  Merge(object, request.body, request.content_type.find("strategic") != std::string::npos);
  return Store(plural, std::move(object), "MODIFIED");
}

// Like a real server, it takes only the status from a write of the status, and all but the status
// from any other write.
ApiResponse FakeApi::Replace(const std::string& plural, const Json& known,
                             const ApiRequest& request) {
  const std::string_view expected = FindString(request.body, "metadata", "resourceVersion");
  if (!expected.empty() && expected != FindString(known, "metadata", "resourceVersion")) {
    return Failure(409, "Conflict", "the object has been modified");
  }
  const bool of_status = request.path.ends_with("/status");
  Json object = of_status ? known : request.body;
  const Json* status = nos::Find(of_status ? request.body : known, "status");
  if (status != nullptr) object.as_object()["status"] = *status;
  MakeObject(object, "metadata")["uid"] = FindString(known, "metadata", "uid");
  return Store(plural, std::move(object), "MODIFIED");
}

ApiResponse FakeApi::Scale(const std::string& plural, Json object, const ApiRequest& request) {
  if (request.method == "PUT") {
    const std::string_view expected = FindString(request.body, "metadata", "resourceVersion");
    if (!expected.empty() && expected != FindString(object, "metadata", "resourceVersion")) {
      return Failure(409, "Conflict", "the object has been modified");
    }
    MakeObject(object, "spec")["replicas"] = *nos::Find(request.body, "spec", "replicas");
    object = Store(plural, std::move(object), "MODIFIED").body;
  }
  JsonObject spec;
  if (const Json* replicas = nos::Find(object, "spec", "replicas")) spec["replicas"] = *replicas;
  return {200,
          {{"apiVersion", "autoscaling/v1"},
           {"kind", "Scale"},
           {"metadata", *nos::Find(object, "metadata")},
           {"spec", std::move(spec)}}};
}

ApiResponse FakeApi::Store(const std::string& plural, Json object, std::string_view event) {
  const std::string key = KeyOf(object);
  MakeObject(object, "metadata")["resourceVersion"] = std::to_string(++version_);
  if (FindString(object, "metadata", "uid").empty()) {
    MakeObject(object, "metadata")["uid"] = "uid-" + std::to_string(version_);
  }
  Json& place = objects_[{plural, key}];
  const Json before = std::exchange(place, object);
  Notify(plural, event == "ADDED" ? nullptr : &before, &place);
  return {200, std::move(object)};
}

void FakeApi::Notify(const std::string& plural, const Json* before, const Json* after) {
  for (const std::weak_ptr<Stream>& weak : streams_) {
    const std::shared_ptr<Stream> stream = weak.lock();
    if (stream == nullptr || stream->plural != plural) continue;
    const bool was = before != nullptr && Selected(*before, stream->selector);
    const bool is = after != nullptr && Selected(*after, stream->selector);
    if (is) stream->events.push_back({was ? "MODIFIED" : "ADDED", *after});
    if (was && !is) stream->events.push_back({"DELETED", after == nullptr ? *before : *after});
  }
}

Result<std::unique_ptr<WatchStream>> FakeApi::Watch(const ApiRequest& request) {
  auto stream = std::make_shared<Stream>();
  stream->plural = ParsePath(request.path).plural;
  stream->selector = request.Query("fieldSelector");
  streams_.push_back(stream);
  return std::unique_ptr<WatchStream>(std::make_unique<Reader>(std::move(stream)));
}

void FakeApi::Put(Json object) {
  std::string plural = ToLower(FindString(object, "kind"));
  plural += plural.ends_with('s') ? "es" : "s";
  const bool known = objects_.contains({plural, KeyOf(object)});
  Store(plural, std::move(object), known ? "MODIFIED" : "ADDED");
}

void FakeApi::Remove(std::string_view plural, const std::string& key) {
  const Json* object = Find(plural, key);
  if (plural == "pods" && object != nullptr && !FindString(*object, "spec", "nodeName").empty()) {
    const std::string_view phase = FindString(*object, "status", "phase");
    Json ended = *object;
    MakeObject(ended, "status")["phase"] = phase == "Succeeded" ? "Succeeded" : "Failed";
    Store("pods", std::move(ended), "MODIFIED");
  }
  Erase(plural, key);
}

void FakeApi::RemoveByForce(const std::string& pod) { Erase("pods", pod); }

void FakeApi::Erase(std::string_view plural, const std::string& key) {
  const auto node = objects_.extract({std::string(plural), key});
  if (node.empty()) return;
  Json last = node.mapped();
  MakeObject(last, "metadata")["resourceVersion"] = std::to_string(++version_);
  Notify(std::string(plural), &last, nullptr);
}

const Json* FakeApi::Find(std::string_view plural, const std::string& key) const {
  const auto found = objects_.find({std::string(plural), key});
  return found == objects_.end() ? nullptr : &found->second;
}

std::vector<Json> FakeApi::All(std::string_view plural) const {
  std::vector<Json> all;
  for (const auto& [place, object] : objects_) {
    if (place.first == plural) all.push_back(object);
  }
  return all;
}

}  // namespace nos::kube
