// Client of a telemetry server's API, for terminal commands.
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

// Address on which `nos telemetry --sandbox` and `nos sandbox` serve.
inline constexpr const char* kLocalTelemetry = "http://127.0.0.1:8090";

struct TelemetryFlags {
  std::string server = kLocalTelemetry, cluster;
  std::string token_file, ca_file, kubeconfig, context;
};
void AddTelemetryFlags(CLI::App& command, TelemetryFlags& flags);

// The time range of a command that reads history.
struct TimeFlags {
  std::string since;  // the default, such as "7d"
  std::string from{}, to = "now";
};
// --since, --from and --to.
void AddTimeFlags(CLI::App& command, TimeFlags& flags);
struct TimeRange {
  int64_t from = 0, to = 0;  // milliseconds since the epoch
};
// Error: kInvalid. `now`: TelemetryClient::Now.
Result<TimeRange> RangeOf(const TimeFlags& flags, int64_t now);

// A token is sent only over https or to an address on this machine. It comes from the token file;
// over https and without a token file, from the kubeconfig if one exists (a token or an exec
// plugin). Errors: kInvalid (flags), see kube::LoadConnection.
Result<kube::ConnectionConfig> TelemetryConnection(const TelemetryFlags& flags);

using Query = std::vector<std::pair<std::string, std::string>>;

class TelemetryClient {
 public:
  // Errors: see TelemetryConnection.
  static Result<TelemetryClient> For(const TelemetryFlags& flags);

  // GET /api/v1/NAME. Errors: the server's error, or no answer, each with a remedy.
  Result<Json> Get(std::string_view name, Query query = {});
  // The same as text, in a format that is not JSON.
  Result<std::string> GetText(std::string_view name, Query query);
  // Milliseconds since the epoch by the server's clock, which records carry. Errors: see Get;
  // kInvalid: it is no telemetry server.
  Result<int64_t> Now();
  // GET /api/v1/stream. `wake`: see EventStream.
  std::unique_ptr<kube::EventStream> Stream(std::function<void()> wake) const;
  // Adds the same remedy to an error of a stream as Get does.
  Status Explain(const Status& error) const;

 private:
  TelemetryClient(kube::ConnectionConfig connection, std::string cluster);
  kube::ApiRequest Request(std::string_view name, Query query) const;

  kube::ConnectionConfig connection_;
  std::string cluster_;
  std::unique_ptr<kube::HttpTransport> transport_;
};

}  // namespace nos::cmd
