#include "cmd/access/reporter_access.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace nos::cmd {

void DescribeReporters(ConfigFields& f, ReportersConfig& c) {
  f.Text("serviceAccounts", c.accounts,
         "Service accounts of this cluster that may deliver, NAMESPACE/NAME, separated by commas. "
         "The API server reviews their tokens: the server needs the right to create TokenReviews.");
  f.Text("audience", c.audience, "Audience of these tokens.");
  f.Text("cluster", c.cluster, "Name of this cluster, for which these service accounts deliver.");
}

Result<ReporterAccess::Options> ReporterAccess::OptionsOf(const ReportersConfig& config) {
  Options options{.accounts = {}, .audience = config.audience, .cluster = config.cluster};
  for (std::string_view account : Split(config.accounts, ',')) {
    account = Trim(account);
    const size_t slash = account.find('/');
    if (slash == 0 || slash == std::string_view::npos || slash + 1 == account.size() ||
        account.find('/', slash + 1) != std::string_view::npos) {
      return Invalid(fmt::format(
          "ingest.serviceAccounts: expected NAMESPACE/NAME, separated by commas, not \"{}\"",
          account));
    }
    options.accounts.emplace(account);
  }
  if (options.audience.empty()) return Invalid("ingest.audience is required");
  if (options.cluster.empty()) return Invalid("ingest.cluster is required");
  return options;
}

Status ReporterAccess::Check(const net::HttpRequest& request, const std::string& address,
                             std::string_view cluster) {
  const auto token = BearerOf(request);
  if (!token) {
    return {Code::kPermission, "the header \"Authorization: Bearer TOKEN\" is missing"};
  }
  NOS_RETURN_IF_ERROR(holders_.Of(*token, address).status());
  if (cluster.empty() || cluster == options_.cluster) return Status::Ok();
  return {Code::kPermission,
          fmt::format("service accounts deliver for cluster \"{}\", not for \"{}\"",
                      options_.cluster, cluster)};
}

Result<TokenHolders::Holder> ReporterAccess::Ask(const std::string& token) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  NOS_ASSIGN(Json subject, ReviewToken(transport_, token, options_.audience));
  const std::string user(FindString(subject, "user"));
  std::string account = user.starts_with(kAccount) ? user.substr(kAccount.size()) : "";
  if (const size_t colon = account.find(':'); colon != std::string::npos) account[colon] = '/';
  if (!options_.accounts.contains(account)) {
    return Status(Code::kPermission, fmt::format("{} does not deliver telemetry", user));
  }
  return TokenHolders::Holder{std::move(subject), true};
}

}  // namespace nos::cmd
