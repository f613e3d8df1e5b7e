// Probes of nos telemetry, which answer while the store is opened: after a crash its journal is
// replayed, which takes longer than the kubelet waits.
//
//   std::unique_ptr<TelemetryServer> server;      // must outlive the probes
//   NOS_ASSIGN(const auto probes, ServerProbes::Serve(addresses, metrics));
//   NOS_ASSIGN(server, TelemetryServer::Start(...));
//   probes->Show(*server);
#pragma once

#include <atomic>
#include <memory>

#include "cmd/daemon/probes.h"
#include "cmd/telemetry/server.h"

namespace nos::cmd {

class ServerProbes {
 public:
  // Alive, and not ready. Errors: see Probes::Serve.
  static Result<std::unique_ptr<ServerProbes>> Serve(const ProbeAddresses& addresses,
                                                     Metrics& metrics,
                                                     MetricsSecurity security = {});
  // Ready as soon as the server is.
  void Show(TelemetryServer& server) { server_ = &server; }
  Probes& probes() { return *probes_; }

 private:
  Status Ready() const;

  std::atomic<TelemetryServer*> server_{nullptr};
  std::unique_ptr<Probes> probes_;  // last: uses the other member
};

}  // namespace nos::cmd
