// Finds the address of the client behind trusted proxies.
//
//   NOS_ASSIGN(const auto proxies, TrustedProxies::Parse("10.0.0.0/8, fd00::1"));
//   const std::string address = proxies.ClientOf(request);
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http.h"

namespace nos::net {

class TrustedProxies {
 public:
  // Addresses and networks, separated by commas; "": none. Error: kInvalid.
  static Result<TrustedProxies> Parse(std::string_view text);

  // Returns the last address in X-Forwarded-For that is not a trusted proxy's, reading the header
  // only as far back as trusted proxies have written it: any client can send that header. Without
  // one, returns the peer's own address.
  std::string ClientOf(const HttpRequest& request) const;
  // True if X-Forwarded-For is not read, because the peer is no trusted proxy.
  bool Ignores(const HttpRequest& request) const;

 private:
  struct Network {
    std::array<unsigned char, 16> address{};  // IPv4 as an IPv4-mapped address
    int bits = 128;
  };
  bool Trusts(std::string_view address) const;

  std::vector<Network> networks_;
};

}  // namespace nos::net
