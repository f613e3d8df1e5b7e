#include "exports/destination.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "codec/base64.h"
#include "net/loopback.h"

namespace nos::exports {
namespace {

constexpr size_t kMaxPassword = 4096;

Status Wrong(std::string_view field, std::string_view what) {
  return Invalid(fmt::format("{}: {}", field, what));
}

}  // namespace

Result<Destination> Destination::For(const DestinationConfig& config, std::string_view field) {
  const auto in = [&](std::string_view name) { return fmt::format("{}.{}", field, name); };
  const bool open = config.url.starts_with("http://");
  if (!open && !config.url.starts_with("https://")) {
    return Wrong(in("url"), "must begin with https:// (or http://)");
  }
  const size_t begin = config.url.find("://") + 3;
  const size_t slash = std::min(config.url.find('/', begin), config.url.size());
  const std::string authority = config.url.substr(begin, slash - begin);
  if (authority.empty() || config.url.find_first_of("?#@ \t\r\n") != std::string::npos) {
    return Wrong(in("url"), "must be https://HOST[:PORT][/PATH], without a user or a query");
  }
  if (!config.token_file.empty() && !config.username.empty()) {
    return Wrong(in("tokenFile"), "set tokenFile, or username and passwordFile, not both");
  }
  if (config.username.empty() != config.password_file.empty()) {
    return Wrong(in("username"), "username and passwordFile must be set together");
  }
  if (config.username.find_first_of(":\r\n") != std::string::npos) {
    return Wrong(in("username"), "must not contain a colon or a line break");
  }
  if (config.certificate_file.empty() != config.key_file.empty()) {
    return Wrong(in("certificateFile"), "certificateFile and keyFile must be set together");
  }
  const bool secret = !config.token_file.empty() || !config.username.empty();
  if (open && secret && !net::IsLoopbackAuthority(authority)) {
    return Wrong(in("url"), "tokens and passwords require https, or an address on this machine");
  }
  Destination destination;
  destination.connection_.server = config.url.substr(0, slash);
  destination.connection_.token.file = config.token_file;
  destination.connection_.ca.file = config.ca_file;
  destination.connection_.client_certificate.file = config.certificate_file;
  destination.connection_.client_key.file = config.key_file;
  destination.path_ = slash < config.url.size() ? config.url.substr(slash) : "/";
  destination.username_ = config.username;
  destination.password_file_ = config.password_file;
  return destination;
}

Result<std::vector<std::pair<std::string, std::string>>> Destination::Headers() const {
  std::vector<std::pair<std::string, std::string>> headers;
  if (username_.empty()) return headers;
  NOS_ASSIGN(const std::string password, ReadFile(password_file_, kMaxPassword));
  headers.emplace_back("Authorization",
                       "Basic " + EncodeBase64(username_ + ":" + std::string(Trim(password))));
  return headers;
}

}  // namespace nos::exports
