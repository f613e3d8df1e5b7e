// Destination of an export: HTTP address and credentials of another system.
//
//   NOS_ASSIGN(Destination destination, Destination::For(config, "export.remoteWrite"));
//   kube::HttpTransport transport(destination.connection());
//   request.path = destination.path();
//   NOS_ASSIGN(request.headers, destination.Headers());
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kube/connection.h"

namespace nos::exports {

struct DestinationConfig {
  std::string url{};         // https://HOST[:PORT][/PATH]; empty: the export is disabled
  std::string token_file{};  // a bearer token
  std::string username{}, password_file{};
  std::string ca_file{}, certificate_file{}, key_file{};  // PEM
};

class Destination {
 public:
  // `field`: configuration path, for messages. Error: kInvalid, with the invalid field.
  static Result<Destination> For(const DestinationConfig& config, std::string_view field);

  const kube::ConnectionConfig& connection() const { return connection_; }
  const std::string& path() const { return path_; }  // "/api/v1/write", "/"
  // Headers for one request. The password is read for each request, because it may be rotated.
  // Errors: see ReadFile.
  Result<std::vector<std::pair<std::string, std::string>>> Headers() const;

 private:
  kube::ConnectionConfig connection_;
  std::string path_, username_, password_file_;
};

}  // namespace nos::exports
