// A Kubernetes API server in memory: for the sandbox, the simulator and tests. The same requests
// as over the network, without the network; ServeApi (serve.h) adds that.
//
//   ApiServer server(clock);
//   kube::Client client(server);
//   NOS_ASSIGN(Json pod, client.Create(kube::kPods, "default", manifest));
//
// Serves the built-in types of types.cc and whatever CustomResourceDefinitions add, with
// discovery, list and watch (pages, selectors, bookmarks, 410 beyond a bounded history), optimistic
// concurrency, every kind of patch, server-side apply, binding and eviction, finalizers and the
// cascade of deletion, Events that expire after an hour, and Tables for `kubectl get`. It runs no
// controllers: a Deployment is only stored, a pod stays Pending until something binds and runs it.
//
// Deterministic: uids, generated names and resourceVersions follow from the seed and the order of
// requests, times from the clock.
//
// Threads: may be called from any thread; one mutex. The clock is read under it, and by watches
// that ask for Tables. Watches may outlive the server; they end with it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "kube/transport.h"
#include "sim/apiserver/storage/watch_hub.h"
#include "sim/apiserver/server/webhook.h"

namespace nos::sim {

struct ApiServerOptions {
  uint64_t seed = 1;
  // For watches and older pages are kept, per resource, at most so many changes...
  size_t history = 10'000;
  size_t history_bytes = size_t{16} << 20;  // ...and so much memory
  size_t max_objects = 1'000'000;           // further creates are refused
};

class ApiServer final : public kube::Transport {
 public:
  explicit ApiServer(const Clock& clock, const ApiServerOptions& options = {});
  ~ApiServer() override;
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Never an error: every refusal is an answer with a metav1.Status.
  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override;
  // Error: the code of the refusal, as kube::StatusOf gives it. A version that is too old is an
  // ERROR event in the stream instead.
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override;

  // From now on pods are made as it says; without `matches`, none is asked. What the webhook uses
  // must be there until another is set and no request is under way.
  void SetPodWebhook(PodWebhook webhook);

  // The refusal of a request for what is not served, whatever its body says: null when it is.
  std::optional<kube::ApiResponse> CheckAddress(const kube::ApiRequest& request);

  // As Watch, with the refusal as an answer, and a stream that tells when it has something.
  std::variant<std::unique_ptr<WatchSubscription>, kube::ApiResponse> OpenWatch(
      const kube::ApiRequest& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nos::sim
