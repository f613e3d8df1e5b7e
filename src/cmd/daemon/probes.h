// The HTTP side of a daemon: /healthz, /readyz and /metrics.
//
//   NOS_ASSIGN(auto probes, Probes::Serve({.health = ":8081", .metrics = ":8080"}, checks,
//   metrics));
//
// Each check has a name and says what is wrong; the answer lists all of them, one a line, with 200
// when all are well and 503 otherwise.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "net/http_server.h"

namespace nos::cmd {

struct ProbeAddresses {
  // "HOST:PORT" or ":PORT" (all addresses of the machine); "" or "0": not served. Both may be the
  // same.
  std::string health, metrics;
};

struct Check {
  std::string name;
  std::function<Status()> look;  // called on any thread
  // A failure means that only a restart can help: /healthz. Otherwise /readyz alone tells.
  bool fatal = false;
};

class Probes {
 public:
  // `before_scrape` brings gauges up to date. Errors: kInvalid (an address), kUnavailable (taken).
  static Result<std::unique_ptr<Probes>> Serve(const ProbeAddresses& addresses,
                                               std::vector<Check> checks, Metrics& metrics,
                                               std::function<void()> before_scrape);
  // What is served, on whichever address.
  net::HttpResponse Answer(const net::HttpRequest& request);

 private:
  Probes() = default;
  net::HttpResponse Look(bool only_fatal) const;

  std::vector<Check> checks_;
  Metrics* metrics_ = nullptr;
  std::function<void()> before_scrape_;
  std::vector<std::unique_ptr<net::HttpServer>> servers_;  // last: they use the others
};

}  // namespace nos::cmd
