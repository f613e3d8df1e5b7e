// Listen addresses in the form "HOST:PORT", or ":PORT" for all addresses of the machine.
#pragma once

#include <memory>
#include <string>

#include "net/http_server.h"

namespace nos::net {

// Options with this address and port. Error: kInvalid.
Result<HttpServerOptions> ParseListenAddress(const std::string& address);
// Like HttpServer::Start; an empty host means every address, of both families if the machine has
// IPv6.
Result<std::unique_ptr<HttpServer>> Listen(HttpServerOptions options, HttpHandler handler);

}  // namespace nos::net
