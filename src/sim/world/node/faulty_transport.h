// One process's way to the API server, with the faults that networks, servers and crashes bring.
// One thread; never blocks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kube/transport.h"
#include "sim/world/events/event_queue.h"
#include "sim/world/events/faults.h"

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

  // Called with the body of every binding that is asked for, whatever becomes of it.
  void OnBinding(std::function<void(const Json& binding)> call) { on_binding_ = std::move(call); }
  // Called with every request that would reach the server; what it answers is the answer.
  using Intercept = std::function<std::optional<kube::ApiResponse>(const kube::ApiRequest&)>;
  void SetIntercept(Intercept intercept) { intercept_ = std::move(intercept); }

 private:
  // The fault that keeps the request from reaching the server, if any.
  std::optional<Result<kube::ApiResponse>> Before(const kube::ApiRequest& request);
  void DeleteTarget(const kube::ApiRequest& binding);
  Status Crash(const kube::ApiRequest& request, std::string_view when);
  void Note(const kube::ApiRequest& request, std::string_view what);

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
