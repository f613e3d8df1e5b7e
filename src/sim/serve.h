// Serves the API server on a local port, for kubectl and other programs.
//
// For loopback only: there is no authentication. Requests that a web page could cause are refused
// (net/loopback.h), and so are those for another host than this machine.
#pragma once

#include <memory>

#include "net/http_server.h"
#include "sim/api_server.h"

namespace nos::sim {

// kPublished is for containers: the address may be any, and the container's engine decides who
// reaches it.
enum class Reach { kThisMachine, kPublished };

// Listens when it returns; port 0 takes any free port (server->port()). `server` must outlive the
// result. A watch that allows bookmarks gets one after each `bookmarks` without an event, like from
// a real server: clients take a longer silence for a lost connection. Answers have the time of the
// server's clock in the header Date. Error: kInvalid for an
// address that is not loopback (unless published), kUnavailable if the port is in use.
Result<std::unique_ptr<net::HttpServer>> ServeApi(ApiServer& server,
                                                  const std::string& address = "127.0.0.1",
                                                  uint16_t port = 0,
                                                  Duration bookmarks = std::chrono::minutes(1),
                                                  Reach reach = Reach::kThisMachine);

// A kubeconfig for this address, as YAML; its only context is "nos-sandbox".
std::string KubeconfigFor(const std::string& address, uint16_t port);

}  // namespace nos::sim
