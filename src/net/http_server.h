// An HTTP/1.1 server with optional TLS: keep-alive, chunked streams, limits on everything a client
// can send or hold.
//
//   NOS_ASSIGN(auto server, HttpServer::Start({}, [](const HttpRequest& request) {
//     return HttpResponse{.code = 200, .body = "{}"};
//   }));
//   ... server->port() ...
//   server.reset();  // closes every connection, waits for running handlers
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "net/http.h"
#include "net/tls.h"

namespace nos::net {

struct HttpServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free port
  int threads = 2;
  // A connection beyond this limit replaces the one that has waited longest for its client (for a
  // request, or for the rest of one). If every connection has a request being answered, the new one
  // is closed at once.
  size_t max_connections = 1000;
  uint32_t max_header_bytes = 32 * 1024;
  uint64_t max_body_bytes = uint64_t{4} * 1024 * 1024;
  // Limit for all unanswered requests together. Beyond it, the server evicts incomplete requests,
  // longest waiting first.
  uint64_t max_held_bytes = uint64_t{256} * 1024 * 1024;
  // Limit for receiving one whole request, and for the time before the first one.
  Duration request_timeout = std::chrono::seconds(20);
  Duration idle_timeout = std::chrono::minutes(5);    // between requests
  Duration write_timeout = std::chrono::seconds(30);  // a client that does not read is dropped
  std::optional<TlsFiles> tls{};
  std::shared_ptr<TlsIdentity> identity{};  // instead of files, if the caller manages the identity
};

// Called from several threads at once. The body of a response to HEAD is not sent.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

class HttpServer {
 public:
  // Listens when it returns. Errors: kInvalid (address, certificate), kNotFound (a TLS file),
  // kUnavailable (port taken).
  static Result<std::unique_ptr<HttpServer>> Start(const HttpServerOptions& options,
                                                   HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nos::net
