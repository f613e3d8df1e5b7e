#include "cmd/daemon/probes.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/log.h"
#include "net/certificate.h"
#include "net/listen.h"

namespace nos::cmd {
namespace {

using net::PlainText;

// The key of a certificate without files is in this process's memory only and ends with it.
constexpr Duration kOwnLifetime = std::chrono::hours(24 * 3650);

Status AddCertificate(const MetricsSecurity& security, net::HttpServerOptions& options) {
  if (security.certificate_file.empty() != security.key_file.empty()) {
    return Invalid("--metrics-cert-file and --metrics-key-file must be given together");
  }
  if (!security.certificate_file.empty()) {
    options.tls = net::TlsFiles{security.certificate_file, security.key_file};
    return Status::Ok();
  }
  const Time now = SystemClock().Now();
  NOS_ASSIGN(const net::IssuedCertificate issued,
             net::IssueCertificate({"nos-metrics"}, now, now + kOwnLifetime));
  NOS_ASSIGN(options.identity, net::TlsIdentity::Of({issued.certificate, issued.key}));
  return Status::Ok();
}

}  // namespace

MetricsSecurity MetricsSecurity::Of(const MetricsFlags& flags,
                                    const kube::ConnectionConfig& connection) {
  if (!flags.secure) return {};
  return {MetricsAccess::Over(connection), flags.certificate_file, flags.key_file};
}

Result<std::unique_ptr<Probes>> Probes::Serve(const ProbeAddresses& addresses,
                                              std::vector<Check> checks, Metrics& metrics,
                                              std::function<void()> before_scrape,
                                              MetricsSecurity security) {
  std::unique_ptr<Probes> probes(new Probes());
  probes->checks_ = std::move(checks);
  probes->metrics_ = &metrics;
  probes->before_scrape_ = std::move(before_scrape);
  probes->access_ = std::move(security.access);
  for (const std::string& address : std::set<std::string>{addresses.health, addresses.metrics}) {
    if (address.empty() || address == "0") continue;
    NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(address));
    options.threads = 1;
    options.max_connections = 50;
    options.max_body_bytes = 1024;
    const bool secured = probes->access_ != nullptr && address == addresses.metrics;
    if (secured) {
      options.threads = 2;  // one may wait for the API server
      NOS_RETURN_IF_ERROR(AddCertificate(security, options));
    }
    auto server =
        net::Listen(options, [self = probes.get(), secured](const net::HttpRequest& request) {
          return self->Answer(request, secured);
        });
    if (!server.ok()) return server.status().Within("listen on " + address);
    probes->servers_.push_back(std::move(server).value());
  }
  return probes;
}

net::HttpResponse Probes::Answer(const net::HttpRequest& request, bool secured) {
  if (request.method != "GET" && request.method != "HEAD") {
    return PlainText(405, "only GET is possible\n");
  }
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/healthz" || path == "/livez") return Look(true);
  if (path == "/readyz") return Look(false);
  if (path == "/metrics") return Scrape(request, secured);
  return PlainText(404, "there are /healthz, /readyz and /metrics\n");
}

net::HttpResponse Probes::Scrape(const net::HttpRequest& request, bool secured) {
  if (access_ != nullptr && !secured) {
    return PlainText(403, "/metrics is at the metrics address, over TLS\n");
  }
  if (access_ != nullptr) {
    if (auto refusal = access_->Refuse(request)) return std::move(*refusal);
  }
  before_scrape_();
  net::HttpResponse response = PlainText(200, metrics_->Text());
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return response;
}

void Probes::LogChange(const Check& check, const Status& status) {
  const std::scoped_lock lock(mutex_);
  std::string& known = problems_[check.name];
  if (known == status.message()) return;
  known = status.message();
  if (known.empty()) {
    Log(LogLevel::kInfo, "passing a check again", {{"check", check.name}});
  } else {
    Log(LogLevel::kWarn, "failing a check", {{"check", check.name}, {"error", known}});
  }
}

net::HttpResponse Probes::Look(bool only_fatal) {
  std::string lines;
  bool well = true;
  for (const Check& check : checks_) {
    if (only_fatal && !check.fatal) continue;
    const Status status = check.look();
    well = well && status.ok();
    lines += fmt::format("[{}] {}\n", status.ok() ? '+' : '-', check.name);
    LogChange(check, status);
  }
  return PlainText(well ? 200 : 503, lines + (well ? "ok\n" : "failed\n"));
}

}  // namespace nos::cmd
