#include "cmd/query/telemetry_client.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmd/command.h"
#include "cmd/query/history_report.h"
#include "net/loopback.h"

namespace nos::cmd {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);

bool IsLocal(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return net::IsLoopbackAuthority(url.substr(0, url.find('/')));
}

// Copies the credentials of a kubeconfig that may be sent to a server other than its API server.
Status TakeKubeconfig(const TelemetryFlags& flags, kube::ConnectionConfig& connection) {
  auto cluster = kube::LoadConnection(flags.kubeconfig, flags.context);
  const bool asked = !flags.kubeconfig.empty() || !flags.context.empty();
  if (!cluster.ok()) return asked ? cluster.status() : Status::Ok();
  connection.token = cluster->token;
  connection.exec = cluster->exec;
  if (connection.exec) connection.exec->provide_cluster_info = false;
  return Status::Ok();
}

}  // namespace

void AddTelemetryFlags(CLI::App& command, TelemetryFlags& flags) {
  command
      .add_option("--server", flags.server, "URL of the telemetry server; default: $NOS_TELEMETRY")
      ->envname("NOS_TELEMETRY")
      ->option_text(fmt::format("URL [{}]", kLocalTelemetry));
  command.add_option("--cluster", flags.cluster, "Name of the cluster, if the server has several")
      ->option_text("NAME");
  command
      .add_option("--token-file", flags.token_file,
                  "File with a bearer token; default: the kubeconfig's token")
      ->option_text("FILE");
  command.add_option("--ca-file", flags.ca_file, "CA certificates (PEM) that verify the server")
      ->option_text("FILE");
  AddClusterFlags(command, flags.kubeconfig, flags.context);
}

void AddTimeFlags(CLI::App& command, TimeFlags& flags) {
  command.add_option("--since", flags.since, "Start of the time range, as time before now")
      ->option_text(fmt::format("DURATION [{}]", flags.since));
  command
      .add_option("--from", flags.from,
                  "Start of the time range: 2026-01-02T03:04:05Z, or a duration before now")
      ->option_text("TIME")
      ->excludes("--since");
  command.add_option("--to", flags.to, "End of the time range")->option_text("TIME [now]");
}

Result<TimeRange> RangeOf(const TimeFlags& flags, int64_t now) {
  NOS_ASSIGN(const int64_t from, ParseMoment(flags.from.empty() ? flags.since : flags.from, now));
  NOS_ASSIGN(const int64_t to, ParseMoment(flags.to, now));
  if (from >= to) return Invalid("--from is after --to");
  return TimeRange{from, to};
}

Result<kube::ConnectionConfig> TelemetryConnection(const TelemetryFlags& flags) {
  const bool tls = flags.server.starts_with("https://");
  if (!tls && !flags.server.starts_with("http://")) {
    return Invalid(fmt::format("--server {}: must begin with https:// (or http://)", flags.server));
  }
  if (!tls && !flags.token_file.empty() && !IsLocal(flags.server)) {
    return Invalid("--token-file: a token requires https, or an address on this machine");
  }
  kube::ConnectionConfig connection;
  connection.server = flags.server;
  while (connection.server.ends_with('/')) connection.server.pop_back();
  connection.ca.file = flags.ca_file;
  if (!flags.token_file.empty()) {
    connection.token.file = flags.token_file;
  } else if (tls) {
    NOS_RETURN_IF_ERROR(TakeKubeconfig(flags, connection));
  }
  return connection;
}

TelemetryClient::TelemetryClient(kube::ConnectionConfig connection, std::string cluster)
    : connection_(std::move(connection)),
      cluster_(std::move(cluster)),
      transport_(std::make_unique<kube::HttpTransport>(connection_,
                                                       kube::HttpOptions{.timeout = kTimeout})) {}

Result<TelemetryClient> TelemetryClient::For(const TelemetryFlags& flags) {
  NOS_ASSIGN(kube::ConnectionConfig connection, TelemetryConnection(flags));
  return TelemetryClient(std::move(connection), flags.cluster);
}

kube::ApiRequest TelemetryClient::Request(std::string_view name, Query query) const {
  kube::ApiRequest request;
  request.method = "GET";
  request.path = fmt::format("/api/v1/{}", name);
  request.query = std::move(query);
  if (!cluster_.empty()) request.query.emplace_back("cluster", cluster_);
  return request;
}

Result<std::string> TelemetryClient::GetText(std::string_view name, Query query) {
  auto answer = transport_->Do(Request(name, std::move(query)));
  if (!answer.ok()) return Explain(answer.status());
  if (answer->code != 200) return Explain(kube::AnswerError(answer->code, answer->text));
  return std::move(answer->text);
}

Result<Json> TelemetryClient::Get(std::string_view name, Query query) {
  NOS_ASSIGN(const std::string text, GetText(name, std::move(query)));
  auto json = ParseJson(text);
  if (!json.ok() || !json->is_object()) {
    return Invalid(
        fmt::format("{}: the server is not a telemetry server: see --server", connection_.server));
  }
  return json;
}

Result<int64_t> TelemetryClient::Now() {
  NOS_ASSIGN(const Json session, Get("session"));
  const Json* now = Find(session, "now");
  if (now == nullptr || !now->is_int64())
    return Invalid("the server is not a nos telemetry server");
  return now->get_int64();
}

std::unique_ptr<kube::EventStream> TelemetryClient::Stream(std::function<void()> wake) const {
  kube::ApiRequest request = Request("stream", {});
  request.accept = "text/event-stream";
  return std::make_unique<kube::EventStream>(connection_, request, std::move(wake));
}

Status TelemetryClient::Explain(const Status& error) const {
  switch (error.code()) {
    case Code::kOk:
      return error;
    case Code::kPermission:
      return {error.code(),
              fmt::format("{}: {}; a token of the cluster is required: kubectl create token NAME > "
                          "FILE, and --token-file FILE",
                          connection_.server, error.message())};
    case Code::kUnavailable:
    case Code::kDeadline:
      return {
          error.code(),
          fmt::format("{}; is a server running? nos sandbox and nos telemetry --sandbox start one "
                      "on this machine, --server URL selects another",
                      error.message())};
    default:
      return {error.code(), fmt::format("{}: {}", connection_.server, error.message())};
  }
}

}  // namespace nos::cmd
