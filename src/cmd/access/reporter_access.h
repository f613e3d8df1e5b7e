// Authenticates reporters of telemetry by the tokens of their service accounts, which the cluster's
// API server reviews. The tokens are for this server alone (their audience), so a token
// read from a report is of no use at the API server, and the reverse. An account of nodes delivers
// only as the node to which the kubelet has bound the token: a stolen node reports for itself
// alone.
//
//   ReporterAccess access(transport, clock, {.accounts = {"nos/nos-operator"},
//                                            .node_accounts = {"nos/nos-mig-agent"},
//                                            .cluster = "prod"});
//   NOS_RETURN_IF_ERROR(access.Check(request, address, &envelope));
//
// Thread-safe.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "cmd/daemon/config_file.h"
#include "cmd/reviews/token_holders.h"
#include "telemetry/envelope.h"

namespace nos::cmd {

struct ReportersConfig {
  // NAMESPACE/NAME, separated by commas. Both "": service accounts may not deliver.
  std::string accounts{}, node_accounts{};
  std::string audience = "nos-telemetry";
  std::string cluster = "default";

  bool any() const { return !accounts.empty() || !node_accounts.empty(); }
};
// Fields of the group ingest.
void DescribeReporters(ConfigFields& fields, ReportersConfig& config);

class ReporterAccess {
 public:
  struct Options {
    std::set<std::string> accounts{}, node_accounts{};  // NAMESPACE/NAME
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

  // `envelope`: null: only the token is checked. Errors: kPermission (no such token, another
  // account, cluster or node), kExhausted (too many failures from the address), kUnavailable (the
  // API server does not answer).
  Status Check(const net::HttpRequest& request, const std::string& address,
               const telemetry::Envelope* envelope);

 private:
  Status CheckNode(const Json& subject, const std::string& source) const;
  Result<TokenHolders::Holder> Ask(const std::string& token);

  kube::Transport& transport_;
  const Options options_;
  TokenHolders holders_;
};

}  // namespace nos::cmd
