// The API of a telemetry server, for commands at a terminal.
//
//   TelemetryFlags flags;
//   AddTelemetryFlags(*command, flags);
//   NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags));
//   NOS_ASSIGN(Json gpus, client.Get("gpus", {{"at", "1763760000000"}}));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "kube/event_stream.h"
#include "kube/http_transport.h"

namespace CLI {
class App;
}  // namespace CLI

namespace nos::cmd {

// Where `nos telemetry --sandbox` and `nos sandbox` have theirs.
inline constexpr const char* kLocalTelemetry = "http://127.0.0.1:8090";

struct TelemetryFlags {
  std::string server = kLocalTelemetry, cluster;
  std::string token_file, ca_file, kubeconfig, context;
};
void AddTelemetryFlags(CLI::App& command, TelemetryFlags& flags);

// A token is sent over https only, or within this machine: that of the file; over https else what
// the kubeconfig has (a token, or a plugin that hands one out), if there is a kubeconfig. Errors:
// kInvalid (flags), as kube::LoadConnection.
Result<kube::ConnectionConfig> TelemetryConnection(const TelemetryFlags& flags);

using Query = std::vector<std::pair<std::string, std::string>>;

class TelemetryClient {
 public:
  // Errors: as TelemetryConnection.
  static Result<TelemetryClient> For(const TelemetryFlags& flags);

  // GET /api/v1/NAME. Errors: what the server says, or that none answers, with what to do.
  Result<Json> Get(std::string_view name, Query query = {});
  // GET /api/v1/stream. `wake`: as EventStream.
  std::unique_ptr<kube::EventStream> Stream(std::function<void()> wake) const;
  // An error of a stream, told as Get tells it.
  Status Explain(const Status& error) const;

 private:
  TelemetryClient(kube::ConnectionConfig connection, std::string cluster);
  kube::ApiRequest Request(std::string_view name, Query query) const;

  kube::ConnectionConfig connection_;
  std::string cluster_;
  std::unique_ptr<kube::HttpTransport> transport_;
};

}  // namespace nos::cmd
