// A transport over a network to a server in this process that runs in step with it: an event of the
// server counts as received as soon as the server has it. Therefore a run over HTTP is as
// reproducible as one with direct calls, and no controller acts on older data because a thread was
// late.
//
//   kube::HttpTransport network(connection);
//   LockstepTransport transport(network, world.api());
//   world.StartControllers(&transport);
//
// Requests go over the network, one after another. Thread-safe.
#pragma once

#include <memory>

#include "kube/transport.h"

namespace nos::sim {

class LockstepTransport final : public kube::Transport {
 public:
  // Both must outlive the object; `network` must outlive its streams, too. `server` is the server
  // behind `network`.
  LockstepTransport(kube::Transport& network, kube::Transport& server)
      : network_(network), server_(server) {}

  Result<kube::ApiResponse> Do(const kube::ApiRequest& request) override {
    return network_.Do(request);
  }
  Result<std::unique_ptr<kube::WatchStream>> Watch(const kube::ApiRequest& request) override;

 private:
  kube::Transport& network_;
  kube::Transport& server_;
};

}  // namespace nos::sim
