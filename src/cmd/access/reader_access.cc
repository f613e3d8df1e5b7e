#include "cmd/access/reader_access.h"

#include <utility>

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
  const bool of_cluster = !identified.has_value();
  if (of_cluster && !options_.review_tokens) {
    return Status(Code::kPermission, "unknown token");
  }
  NOS_ASSIGN(Json subject, of_cluster ? ReviewToken(transport_, token) : *std::move(identified));
  return TokenHolders::Holder{std::move(subject), of_cluster};
}

}  // namespace nos::cmd
