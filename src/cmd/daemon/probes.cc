#include "cmd/daemon/probes.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/log.h"
#include "net/listen.h"

namespace nos::cmd {
namespace {

net::HttpResponse PlainText(int code, std::string text) {
  net::HttpResponse response;
  response.code = code;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

}  // namespace

Result<std::unique_ptr<Probes>> Probes::Serve(const ProbeAddresses& addresses,
                                              std::vector<Check> checks, Metrics& metrics,
                                              std::function<void()> before_scrape) {
  std::unique_ptr<Probes> probes(new Probes());
  probes->checks_ = std::move(checks);
  probes->metrics_ = &metrics;
  probes->before_scrape_ = std::move(before_scrape);
  for (const std::string& address : std::set<std::string>{addresses.health, addresses.metrics}) {
    if (address.empty() || address == "0") continue;
    NOS_ASSIGN(net::HttpServerOptions options, net::ParseListenAddress(address));
    options.threads = 1;
    options.max_connections = 50;
    options.max_body_bytes = 1024;
    auto server = net::Listen(options, [self = probes.get()](const net::HttpRequest& request) {
      return self->Answer(request);
    });
    if (!server.ok()) return server.status().Within("listen on " + address);
    probes->servers_.push_back(std::move(server).value());
  }
  return probes;
}

net::HttpResponse Probes::Answer(const net::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    return PlainText(405, "only GET is possible\n");
  }
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (path == "/healthz" || path == "/livez") return Look(true);
  if (path == "/readyz") return Look(false);
  if (path == "/metrics") {
    before_scrape_();
    net::HttpResponse response = PlainText(200, metrics_->Text());
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }
  return PlainText(404, "there are /healthz, /readyz and /metrics\n");
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
