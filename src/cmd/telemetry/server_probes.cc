#include "cmd/telemetry/server_probes.h"

#include <utility>

namespace nos::cmd {

Result<std::unique_ptr<ServerProbes>> ServerProbes::Serve(const ProbeAddresses& addresses,
                                                          Metrics& metrics,
                                                          MetricsSecurity security) {
  auto probes = std::make_unique<ServerProbes>();
  NOS_ASSIGN(probes->probes_,
             Probes::Serve(
                 addresses, {{"store", [self = probes.get()] { return self->Ready(); }}}, metrics,
                 [self = probes.get()] {
                   if (TelemetryServer* const server = self->server_) server->Report();
                 },
                 std::move(security)));
  return probes;
}

Status ServerProbes::Ready() const {
  const TelemetryServer* const server = server_;
  if (server != nullptr) return server->Ready();
  return {Code::kUnavailable, "the store is being opened"};
}

}  // namespace nos::cmd
