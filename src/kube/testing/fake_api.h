// A fake API server in memory behind Transport, with a few kinds of objects, for tests of
// controllers: get, list and watch (field selectors on metadata.name and spec.nodeName), create,
// replace, merge and strategic patch (conditions merge by type, webhooks by name), delete, bind,
// evict (limited by status.disruptionsAllowed of PodDisruptionBudgets with matchLabels). Not a full
// API server: that is sim/apiserver.
//
// For one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "kube/transport.h"

namespace nos::kube {

class FakeApi final : public Transport {
 public:
  Result<ApiResponse> Do(const ApiRequest& request) override;
  Result<std::unique_ptr<WatchStream>> Watch(const ApiRequest& request) override;

  // Creates or replaces without validation; the kind names the collection ("Pod" -> pods).
  void Put(Json object);
  // A kubelet reports that a pod of its node has ended before it removes it, and so does this.
  void Remove(std::string_view plural, const std::string& key);
  // Like a deletion by force: no kubelet reports the end of the pod.
  void RemoveByForce(const std::string& pod);
  // Null if the object does not exist. Key: "ns/name" or "name".
  const Json* Find(std::string_view plural, const std::string& key) const;
  // All of a kind, in order of their keys.
  std::vector<Json> All(std::string_view plural) const;

  // Called before every request; an answer replaces the default behaviour.
  std::function<std::optional<Result<ApiResponse>>(const ApiRequest&)> intercept;
  std::vector<ApiRequest> writes;  // every request that is not a GET
  // APIResourceList by path ("/apis/apps/v1"); other paths are not served.
  std::map<std::string, Json> discovery;
  // deletionTimestamp of evicted pods, which the test then removes itself; "": they are removed at
  // once.
  std::string evicted_end_at;

 private:
  struct Stream {
    std::string plural, selector;
    std::deque<WatchEvent> events;
    bool ended = false;
  };
  class Reader;

  ApiResponse Store(const std::string& plural, Json object, std::string_view event);
  void Erase(std::string_view plural, const std::string& key);
  ApiResponse List(const std::string& plural, const ApiRequest& request) const;
  ApiResponse Post(const std::string& plural, const std::string& ns, const std::string& name,
                   const ApiRequest& request);
  ApiResponse Evict(const std::string& ns, const std::string& name, const ApiRequest& request);
  ApiResponse Patch(const std::string& plural, const std::string& key, const ApiRequest& request);
  ApiResponse Replace(const std::string& plural, const Json& known, const ApiRequest& request);
  ApiResponse Scale(const std::string& plural, Json object, const ApiRequest& request);
  void Notify(const std::string& plural, const Json* before, const Json* after);

  int64_t version_ = 100;
  std::map<std::pair<std::string, std::string>, Json> objects_;  // (plural, key)
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace nos::kube
