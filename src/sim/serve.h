// The API server on a port of this machine, for kubectl and other programs.
//
// For loopback only: there is no authentication. Requests that a web page could cause are refused
// (net/loopback.h).
#pragma once

#include <memory>

#include "net/http_server.h"
#include "sim/api_server.h"

namespace nos::sim {

// Listens when it returns; port 0 takes any free one (server->port()). `server` must outlive the
// result. A watch that allows bookmarks gets one whenever it has been silent for `bookmarks`, as
// from a real server: clients take longer silence for a lost connection. Error: kInvalid for an
// address that is not loopback, kUnavailable when the port is taken.
Result<std::unique_ptr<net::HttpServer>> ServeApi(ApiServer& server,
                                                  const std::string& address = "127.0.0.1",
                                                  uint16_t port = 0,
                                                  Duration bookmarks = std::chrono::minutes(1));

// A kubeconfig for it, as YAML, whose only context is called "nos-sandbox".
std::string KubeconfigFor(const std::string& address, uint16_t port);

}  // namespace nos::sim
