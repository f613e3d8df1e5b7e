// Authenticates reporters of telemetry by the tokens of their service accounts, which the cluster's
// API server reviews. The tokens are for this server alone (their audience), so that nobody who
// reads a report's token can use it at the API server, and the reverse.
//
//   ReporterAccess access(transport, clock, {.accounts = {"nos/nos-operator"}, .cluster = "prod"});
//   NOS_RETURN_IF_ERROR(access.Check(request, address, envelope.cluster));
//
// Thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cmd/daemon/config_file.h"
#include "cmd/reviews/token_holders.h"

namespace nos::cmd {

struct ReportersConfig {
  std::string
      accounts;  // NAMESPACE/NAME, separated by commas; "": service accounts may not deliver
  std::string audience = "nos-telemetry";
  std::string cluster = "default";
};
// Fields of the group ingest.
void DescribeReporters(ConfigFields& fields, ReportersConfig& config);

class ReporterAccess {
 public:
  struct Options {
    std::set<std::string> accounts;  // NAMESPACE/NAME
    std::string audience = "nos-telemetry";
    std::string cluster;  // for which they may deliver
    // Limits of failed attempts; null: no limit.
    telemetryserver::Limits* limits = nullptr;
  };
  // Error: kInvalid, with the field.
  static Result<Options> OptionsOf(const ReportersConfig& config);
  // The arguments must outlive it.
  ReporterAccess(kube::Transport& transport, const Clock& clock, Options options)
      : transport_(transport),
        options_(std::move(options)),
        holders_(clock, options_.limits, [this](const std::string& token) { return Ask(token); }) {}

  // `cluster`: of the report; "": only the token is checked. Errors: kPermission (no such token,
  // another account, another cluster), kExhausted (too many failures from the address),
  // kUnavailable (the API server does not answer).
  Status Check(const net::HttpRequest& request, const std::string& address,
               std::string_view cluster);

 private:
  Result<TokenHolders::Holder> Ask(const std::string& token);

  kube::Transport& transport_;
  const Options options_;
  TokenHolders holders_;
};

}  // namespace nos::cmd
