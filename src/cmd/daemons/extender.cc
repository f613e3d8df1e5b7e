#include "cmd/daemons/extender.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/log.h"
#include "cmd/daemon/outside_events.h"
#include "controllers/extender.h"
#include "kube/metered_transport.h"
#include "net/listen.h"
#include "reconcile/metrics.h"

namespace nos::cmd {
namespace {

constexpr std::string_view kPath = "/v1/";
// Five thousand complete Node objects (nodeCacheCapable: false).
constexpr uint64_t kMaxBody = uint64_t{64} << 20;
// Each binding occupies a thread until the API server answers.
constexpr int kThreads = 16;

net::HttpResponse Respond(controllers::Extender& extender, const net::HttpRequest& request,
                          kube::Client& client, const Clock& clock) {
  if (!request.target.starts_with(kPath)) return net::PlainText(404, "the extender is at /v1\n");
  if (request.method != "POST") return net::PlainText(405, "only POST is possible\n");
  controllers::Extender::Answer answer =
      extender.Handle(request.target.substr(kPath.size()), request.body, client, clock);
  if (answer.code != 200) return net::PlainText(answer.code, std::move(answer.body));
  net::HttpResponse response;
  response.body = std::move(answer.body);
  return response;
}

Result<net::HttpServerOptions> OptionsOf(const ExtenderFlags& flags) {
  if (flags.certificate.empty() || flags.key.empty()) {
    return Invalid("--extender requires --tls-cert-file and --tls-key-file");
  }
  NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(flags.address));
  // A client of the extender can have pods bound.
  const bool loopback = options.address == "127.0.0.1" || options.address == "::1";
  if (flags.client_ca.empty() && !loopback) {
    return Invalid("--extender requires --client-ca-file or a loopback address");
  }
  options.threads = kThreads;
  options.max_connections = 200;
  options.max_body_bytes = kMaxBody;
  options.tls = net::TlsFiles{flags.certificate, flags.key, flags.client_ca};
  return options;
}

}  // namespace

void AddExtenderFlags(CLI::App& command, ExtenderFlags& flags) {
  CLI::Option* extender =
      command
          .add_option_function<std::string>(
              "--extender",
              [&flags](const std::string& address) {
                flags.address = address.empty() ? ":8888" : address;
              },
              "Serve a scheduler extender for kube-scheduler in place of scheduling, on "
              "HOST:PORT, default :8888; see docs/scheduler.md")
          ->expected(0, 1)
          ->option_text("[HOST:PORT]");
  command.add_option("--tls-cert-file", flags.certificate, "Certificate of the extender (PEM)")
      ->option_text("FILE")
      ->needs(extender);
  command.add_option("--tls-key-file", flags.key, "Private key of the extender (PEM)")
      ->option_text("FILE")
      ->needs(extender);
  command
      .add_option(
          "--client-ca-file", flags.client_ca,
          "CA certificate (PEM) that client certificates must be signed by; required unless the "
          "address is loopback")
      ->option_text("FILE")
      ->needs(extender);
}

Status RunExtender(const ExtenderFlags& flags, const DaemonFlags& daemon, const SchedulerFile& file,
                   const gpu::Catalogue& catalogue) {
  NOS_ASSIGN(const net::HttpServerOptions server_options, OptionsOf(flags));
  const DaemonConfig& common = file.own.daemon;
  const std::string& kubeconfig =
      daemon.kubeconfig.empty() ? file.configuration.client.kubeconfig : daemon.kubeconfig;
  NOS_ASSIGN(const kube::ConnectionConfig connection,
             kube::LoadConnection(kubeconfig, daemon.context));
  WakeSignal bell;
  OutsideEvents events({daemon.config}, [&] { bell.Ring(); });
  Metrics metrics;
  Announce("scheduler", metrics);
  kube::HttpOptions http_options = HttpOptionsOf(file);
  http_options.max_connections = 2 * kThreads;
  kube::HttpTransport http(connection, http_options);
  kube::MeteredTransport metered(http, metrics);
  controllers::Extender extender(catalogue);
  reconcile::MeteredReconciler reconciler(extender, "extender", metrics);
  reconcile::RunnerOptions options;
  options.relist_every = common.relist_every;
  options.wake = [&] { bell.Ring(); };
  reconcile::Runner runner(reconciler, metered, options);
  LoopReport report;
  NOS_ASSIGN(const auto probes,
             Probes::Serve(
                 common.addresses,
                 {{"loop", [&] { return report.Alive(); }, true},
                  {"caches", [&] { return report.Synced(); }}},
                 metrics, [] {}, MetricsSecurity::Of(daemon.metrics, connection)));
  const SystemClock clock;
  kube::Client client(metered);
  auto server = net::Listen(server_options, [&](const net::HttpRequest& request) {
    return Respond(extender, request, client, clock);
  });
  if (!server.ok()) return server.status().Within("--extender " + flags.address);
  Log(LogLevel::kInfo, "serving the extender",
      {{"address", flags.address}, {"port", std::to_string((*server)->port())}});
  RunUntil([&] { return events.StopAsked(); }, runner, bell, clock, [&] { report.Turn(runner); });
  server->reset();  // requests in progress use objects destroyed below
  Log(LogLevel::kInfo, "stopping nos", {{"command", "scheduler"}});
  return Status::Ok();
}

}  // namespace nos::cmd
