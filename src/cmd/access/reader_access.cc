#include "cmd/access/reader_access.h"

#include <fmt/format.h>

#include <utility>

#include "identity/id_token.h"
#include "identity/jwt.h"

namespace nos::cmd {
namespace {

using telemetryserver::Reader;

}  // namespace

Result<Reader> ReaderAccess::Of(const net::HttpRequest& request, const std::string& address) {
  const auto token = BearerOf(request);
  if (!token) {
    return Status(Code::kPermission, options_.review_tokens
                                         ? "sign in with a token of the cluster, such as "
                                           "`kubectl create token NAME` gives"
                                         : "sign in");
  }
  NOS_ASSIGN(const TokenHolders::Holder holder, holders_.Of(*token, address));
  NOS_ASSIGN(Reader reader, rights_.Of(holder.subject));
  reader.has_cluster_token = holder.of_cluster;
  return reader;
}

Result<Reader> ReaderAccess::OfSubject(const Json& subject) {
  NOS_ASSIGN(Reader reader, rights_.Of(subject));
  reader.has_session = true;
  return reader;
}

Result<TokenHolders::Holder> ReaderAccess::Ask(const std::string& token) {
  auto identified = options_.identify ? options_.identify(token) : std::nullopt;
  if (!identified) return Review(token);
  NOS_ASSIGN(Json subject, *std::move(identified));
  return TokenHolders::Holder{std::move(subject), false};
}

// The audience that the token claims decides only which question is asked.
Result<TokenHolders::Holder> ReaderAccess::Review(const std::string& token) {
  if (!options_.review_tokens) return Status(Code::kPermission, "unknown token");
  const auto jwt = identity::ParseJwt(token);
  const bool for_server =
      !options_.audience.empty() && jwt.ok() && identity::IsFor(jwt->claims, options_.audience);
  if (!for_server && !options_.cluster_tokens) {
    return Status(Code::kPermission,
                  fmt::format("this server takes tokens for the audience {0} only, such as "
                              "`kubectl create token NAME --audience {0}` gives",
                              options_.audience));
  }
  NOS_ASSIGN(Json subject, ReviewToken(transport_, token, for_server ? options_.audience : ""));
  return TokenHolders::Holder{std::move(subject), !for_server};
}

}  // namespace nos::cmd
