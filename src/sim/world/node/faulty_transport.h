// A process's connection to the API server, with injected faults of networks, servers and crashes.
// One thread; never blocks.
//
//   FaultyTransport transport("scheduler", api, faults, life, queue, clock, log);
//   kube::Client client(transport);                   // its calls fail as `faults` draws
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kube/transport.h"
#include "sim/world/events/faults.h"
#include "sim/world/events/queue.h"

namespace nos::sim {

class FaultyTransport final : public kube::Transport {
 public:
  // All arguments must outlive the object and its streams.
  FaultyTransport(std::string owner, kube::Transport& under, Faults& faults, Life& life,
                  EventQueue& queue, const Clock& clock, EventLog& log)
      : owner_(std::move(owner)),
        under_(under),
        faults_(faults),
        life_(life),
        queue_(queue),
        clock_(clock),
        log_(log) {}

  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override;
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override;

  // Called with the body of every bind request, even if a fault drops it.
  void OnBinding(std::function<void(const Json& binding)> call) { on_binding_ = std::move(call); }
  // Called with every request that would reach the server; an answer replaces the server's.
  using Intercept = std::function<std::optional<kube::ApiResponse>(const kube::ApiRequest&)>;
  void SetIntercept(Intercept intercept) { intercept_ = std::move(intercept); }

 private:
  // The fault that prevents the request from reaching the server; nullopt if there is none.
  std::optional<Result<kube::ApiResponse>> Before(const kube::ApiRequest& request);
  void DeleteTarget(const kube::ApiRequest& binding);
  Status Crash(const kube::ApiRequest& request, std::string_view when);
  void Note(const kube::ApiRequest& request, std::string_view what);
  void ShowWrite(const kube::ApiRequest& request, const Result<kube::ApiResponse>& response);

  std::string owner_;
  kube::Transport& under_;
  Faults& faults_;
  Life& life_;
  EventQueue& queue_;
  const Clock& clock_;
  EventLog& log_;
  std::function<void(const Json&)> on_binding_;
  Intercept intercept_;
};

}  // namespace nos::sim
