#include "cmd/access/reporter_access.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace nos::cmd {

void DescribeReporters(ConfigFields& f, ReportersConfig& c) {
  f.Text("serviceAccounts", c.accounts,
         "Service accounts of this cluster that may deliver, NAMESPACE/NAME, separated by commas. "
         "The API server reviews their tokens: the server needs the right to create TokenReviews.");
  f.Text("nodeServiceAccounts", c.node_accounts,
         "Service accounts of which each token delivers only for the node to which it is bound, as "
         "the tokens of Pods are from Kubernetes 1.30 on.");
  f.Text("audience", c.audience, "Audience of these tokens.");
  f.Text("cluster", c.cluster, "Name of this cluster, for which these service accounts deliver.");
}

namespace {

constexpr const char* kNodeName = "authentication.kubernetes.io/node-name";

Result<std::set<std::string>> ReadAccounts(std::string_view key, std::string_view text) {
  std::set<std::string> accounts;
  if (text.empty()) return accounts;
  for (std::string_view account : Split(text, ',')) {
    account = Trim(account);
    const size_t slash = account.find('/');
    if (slash == 0 || slash == std::string_view::npos || slash + 1 == account.size() ||
        account.find('/', slash + 1) != std::string_view::npos) {
      return Invalid(fmt::format(
          "ingest.{}: expected NAMESPACE/NAME, separated by commas, not \"{}\"", key, account));
    }
    accounts.emplace(account);
  }
  return accounts;
}

// "NAMESPACE/NAME"; "": no service account.
std::string AccountOf(std::string_view user) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  std::string account(user.starts_with(kAccount) ? user.substr(kAccount.size()) : "");
  if (const size_t colon = account.find(':'); colon != std::string::npos) account[colon] = '/';
  return account;
}

// The node to which the token is bound; "": none.
std::string NodeOf(const Json& subject) {
  const Json* extra = Find(subject, "extra");
  const Json* names = extra == nullptr ? nullptr : Find(*extra, kNodeName);
  if (names == nullptr || !names->is_array() || names->get_array().size() != 1) return {};
  const Json& name = names->get_array().front();
  return name.is_string() ? std::string(View(name.get_string())) : std::string();
}

}  // namespace

Result<ReporterAccess::Options> ReporterAccess::OptionsOf(const ReportersConfig& config) {
  Options options;
  options.audience = config.audience;
  options.cluster = config.cluster;
  NOS_ASSIGN(options.accounts, ReadAccounts("serviceAccounts", config.accounts));
  NOS_ASSIGN(options.node_accounts, ReadAccounts("nodeServiceAccounts", config.node_accounts));
  for (const std::string& account : options.node_accounts) {
    if (!options.accounts.contains(account)) continue;
    return Invalid(fmt::format(
        "ingest.nodeServiceAccounts: {} is in ingest.serviceAccounts, too, and would deliver for "
        "every node",
        account));
  }
  if (options.audience.empty()) return Invalid("ingest.audience is required");
  if (options.cluster.empty()) return Invalid("ingest.cluster is required");
  return options;
}

Status ReporterAccess::Check(const net::HttpRequest& request, const std::string& address,
                             const telemetry::Envelope* envelope) {
  const auto token = BearerOf(request);
  if (!token) {
    return {Code::kPermission, "the header \"Authorization: Bearer TOKEN\" is missing"};
  }
  NOS_ASSIGN(const TokenHolders::Holder holder, holders_.Of(*token, address));
  if (envelope == nullptr) return Status::Ok();
  if (envelope->cluster != options_.cluster) {
    return {Code::kPermission,
            fmt::format("service accounts deliver for cluster \"{}\", not for \"{}\"",
                        options_.cluster, envelope->cluster)};
  }
  return CheckNode(holder.subject, envelope->source);
}

Status ReporterAccess::CheckNode(const Json& subject, const std::string& source) const {
  if (options_.accounts.contains(AccountOf(FindString(subject, "user")))) return Status::Ok();
  const std::string node = NodeOf(subject);
  if (node.empty()) {
    return {Code::kPermission,
            "the token is bound to no node, as tokens of Pods are from Kubernetes 1.30 on "
            "(ingest.nodeServiceAccounts)"};
  }
  if (source == "node/" + node) return Status::Ok();
  return {Code::kPermission,
          fmt::format("a token of node \"{}\" does not deliver for \"{}\"", node, source)};
}

Result<TokenHolders::Holder> ReporterAccess::Ask(const std::string& token) {
  NOS_ASSIGN(Json subject, ReviewToken(transport_, token, options_.audience));
  const std::string user(FindString(subject, "user"));
  const std::string account = AccountOf(user);
  if (!options_.accounts.contains(account) && !options_.node_accounts.contains(account)) {
    return Status(Code::kPermission, fmt::format("{} does not deliver telemetry", user));
  }
  return TokenHolders::Holder{std::move(subject), true};
}

}  // namespace nos::cmd
