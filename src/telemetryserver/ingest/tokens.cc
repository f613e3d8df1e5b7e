#include "telemetryserver/ingest/tokens.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/text.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kMinToken = 16;
constexpr size_t kMaxTokens = 10'000;
constexpr std::string_view kScheme = "bearer ";

std::array<unsigned char, 32> DigestOf(std::string_view token) {
  std::array<unsigned char, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

}  // namespace

Status Tokens::Read(std::string_view text) {
  std::vector<Entry> entries;
  int number = 0;
  for (std::string_view line : Split(text, '\n')) {
    ++number;
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t space = line.find_first_of(" \t");
    const std::string_view token = space == std::string_view::npos ? "" : Trim(line.substr(space));
    if (token.find_first_of(" \t") != std::string_view::npos || token.size() < kMinToken) {
      return Invalid(fmt::format(
          "line {}: expected CLUSTER and a token of at least {} characters, without spaces", number,
          kMinToken));
    }
    if (entries.size() >= kMaxTokens) {
      return Invalid(fmt::format("more than {} tokens", kMaxTokens));
    }
    entries.push_back({std::string(line.substr(0, space)), DigestOf(token)});
  }
  const std::scoped_lock lock(mutex_);
  entries_ = std::move(entries);
  return Status::Ok();
}

bool Tokens::empty() const {
  const std::scoped_lock lock(mutex_);
  return entries_.empty();
}

Status Tokens::Check(std::string_view authorization) const { return Check(authorization, {}); }

// Compares all entries in constant time, so that the duration reveals nothing about a token.
Status Tokens::Check(std::string_view authorization, std::string_view cluster) const {
  if (ToLower(authorization.substr(0, kScheme.size())) != kScheme) {
    return {Code::kPermission, "the header \"Authorization: Bearer TOKEN\" is missing"};
  }
  const auto digest = DigestOf(Trim(authorization.substr(kScheme.size())));
  bool known = false, allowed = cluster.empty();
  const std::scoped_lock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) != 0) continue;
    known = true;
    allowed = allowed || entry.cluster == "*" || entry.cluster == cluster;
  }
  if (!known) return {Code::kPermission, "the token is not known here"};
  if (allowed) return Status::Ok();
  return {Code::kPermission, fmt::format("the token is not for cluster \"{}\"", cluster)};
}

}  // namespace nos::telemetryserver
