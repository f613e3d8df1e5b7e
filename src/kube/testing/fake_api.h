// A few kinds of objects behind the Transport seam, in memory, for tests of controllers: get, list
// and watch (field selectors on metadata.name and spec.nodeName), create, merge and strategic patch
// (conditions merge by type, webhooks by name), delete, bind, evict (as far as
// status.disruptionsAllowed of PodDisruptionBudgets with matchLabels lets it go). Not a full API
// server: that is sim/apiserver.
//
// One thread.
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

  // Creates or replaces, past all rules; the kind names the collection ("Pod" -> pods).
  void Put(Json object);
  void Remove(std::string_view plural, const std::string& key);
  // Null when there is none. Key: "ns/name" or "name".
  const Json* Find(std::string_view plural, const std::string& key) const;
  // All of a kind, in order of their keys.
  std::vector<Json> All(std::string_view plural) const;

  // Asked before every request; an answer replaces what would happen.
  std::function<std::optional<Result<ApiResponse>>(const ApiRequest&)> intercept;
  std::vector<ApiRequest> writes;  // every request that is not a GET
  // deletionTimestamp of pods that are evicted, which end when the test says so; "": they are gone.
  std::string evicted_end_at;

 private:
  struct Stream {
    std::string plural, selector;
    std::deque<WatchEvent> events;
    bool ended = false;
  };
  class Reader;

  ApiResponse Store(const std::string& plural, Json object, std::string_view event);
  ApiResponse List(const std::string& plural, const ApiRequest& request) const;
  ApiResponse Post(const std::string& plural, const std::string& ns, const std::string& name,
                   const ApiRequest& request);
  ApiResponse Evict(const std::string& ns, const std::string& name, const ApiRequest& request);
  ApiResponse Patch(const std::string& plural, const std::string& key, const ApiRequest& request);
  void Notify(const std::string& plural, const Json* before, const Json* after);

  int64_t version_ = 100;
  std::map<std::pair<std::string, std::string>, Json> objects_;  // (plural, key)
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace nos::kube
