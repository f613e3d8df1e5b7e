#include "cmd/probes.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/text.h"

namespace nos::cmd {
namespace {

Result<net::HttpServerOptions> OptionsOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto port = ParseInt(colon == std::string::npos ? "" : address.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return Invalid(fmt::format("'{}' is no address: expected HOST:PORT or :PORT", address));
  }
  net::HttpServerOptions options;
  options.address = address.substr(0, colon);
  if (options.address.starts_with('[') && options.address.ends_with(']')) {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
  if (options.address == "localhost") options.address = "127.0.0.1";
  options.port = static_cast<uint16_t>(*port);
  options.threads = 1;
  options.max_connections = 50;
  options.max_body_bytes = 1024;
  return options;
}

// An empty host is every address: of both families where the machine has IPv6.
Result<std::unique_ptr<net::HttpServer>> Listen(net::HttpServerOptions options,
                                                const net::HttpHandler& handler) {
  if (!options.address.empty()) return net::HttpServer::Start(options, handler);
  options.address = "::";
  auto server = net::HttpServer::Start(options, handler);
  if (server.ok()) return server;
  options.address = "0.0.0.0";
  return net::HttpServer::Start(options, handler);
}

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
    NOS_ASSIGN(const net::HttpServerOptions options, OptionsOf(address));
    auto server = Listen(options, [self = probes.get()](const net::HttpRequest& request) {
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

net::HttpResponse Probes::Look(bool only_fatal) const {
  std::string lines;
  bool well = true;
  for (const Check& check : checks_) {
    if (only_fatal && !check.fatal) continue;
    const Status status = check.look();
    well = well && status.ok();
    lines += status.ok() ? fmt::format("[+] {}\n", check.name)
                         : fmt::format("[-] {}: {}\n", check.name, status.message());
  }
  return PlainText(well ? 200 : 503, lines + (well ? "ok\n" : "failed\n"));
}

}  // namespace nos::cmd
