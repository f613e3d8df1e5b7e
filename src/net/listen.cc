#include "net/listen.h"

#include <fmt/core.h>

#include "base/text.h"

namespace nos::net {

Result<HttpServerOptions> ParseListenAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const auto port = ParseInt(colon == std::string::npos ? "" : address.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return Invalid(fmt::format("'{}' is no address: expected HOST:PORT or :PORT", address));
  }
  HttpServerOptions options;
  options.address = address.substr(0, colon);
  if (options.address.starts_with('[') && options.address.ends_with(']')) {
    options.address = options.address.substr(1, options.address.size() - 2);
  }
  if (options.address == "localhost") options.address = "127.0.0.1";
  options.port = static_cast<uint16_t>(*port);
  return options;
}

Result<std::unique_ptr<HttpServer>> Listen(HttpServerOptions options, HttpHandler handler) {
  if (!options.address.empty()) return HttpServer::Start(options, std::move(handler));
  options.address = "::";
  auto server = HttpServer::Start(options, handler);
  if (server.ok()) return server;
  options.address = "0.0.0.0";
  return HttpServer::Start(options, std::move(handler));
}

}  // namespace nos::net
