// An in-memory Kubernetes API server for the sandbox, the simulator and tests. It takes the
// requests of kube::Transport without a network; ServeApi (serve.h) adds the network.
//
//   ApiServer server(clock);
//   kube::Client client(server);
//   NOS_ASSIGN(Json pod, client.Create(kube::kPods, "default", manifest));
//
// It serves the built-in types of types.cc and the resources of CustomResourceDefinitions, with
// discovery, list and watch (pages, selectors, bookmarks, 410 beyond a bounded history), optimistic
// concurrency, all kinds of patch, server-side apply, binding and eviction, finalizers and
// cascading deletion, Events that expire after an hour, and Tables for `kubectl get`. It runs no
// controllers: a Deployment makes no pods, and a pod stays Pending, until another component acts
// (world.h).
//
// Deterministic: uids, generated names and resourceVersions follow from the seed and the order of
// requests; times come from the clock.
//
// Threads: may be called from any thread; one mutex. The clock is read under the mutex, and by
// watches that request Tables. Watches may outlive the server; they end with it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "kube/transport.h"
#include "sim/apiserver/server/webhook.h"
#include "sim/apiserver/storage/watch_hub.h"

namespace nos::sim {

struct ApiServerOptions {
  uint64_t seed = 1;
  // Limits of the history that watches and continued lists read, per resource: the number of
  // changes...
  size_t history = 10'000;
  size_t history_bytes = size_t{16} << 20;  // ...and their memory
  size_t max_objects = 1'000'000;           // further creates are refused
};

class ApiServer final : public kube::Transport {
 public:
  explicit ApiServer(const Clock& clock, const ApiServerOptions& options = {});
  ~ApiServer() override;
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Never an error: a refusal is an answer with a metav1.Status.
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override;
  // Error: the code of the refusal, as kube::StatusOf returns it. A resourceVersion that is too old
  // is not an error here, but an ERROR event in the stream.
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override;

  // Sends pods to this webhook from now on; a webhook without `matches` disables the call. Objects
  // that the webhook uses must outlive the next SetPodWebhook call and all requests in flight.
  void SetPodWebhook(PodWebhook webhook);

  // The refusal of a request to a path that is not served, regardless of its body; nullopt if the
  // path is served.
  std::optional<kube::ApiResponse> CheckAddress(const kube::ApiRequest& request);

  // The time on the server's clock.
  Time Now() const;

  // Like Watch, but returns a refusal as an answer, and the stream announces new events.
  std::variant<std::unique_ptr<WatchSubscription>, kube::ApiResponse> OpenWatch(
      const kube::ApiRequest& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nos::sim
