#include "net/client_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace nos::net {
namespace {

using Address = std::array<unsigned char, 16>;

constexpr int kV4Bits = 96;  // length of the prefix of an IPv4-mapped IPv6 address

std::optional<Address> ParseAddress(std::string_view text) {
  const std::string name(text);
  Address address{};
  if (inet_pton(AF_INET6, name.c_str(), address.data()) == 1) return address;
  address[10] = address[11] = 0xff;
  if (inet_pton(AF_INET, name.c_str(), address.data() + 12) == 1) return address;
  return std::nullopt;
}

bool SameBits(const Address& a, const Address& b, int bits) {
  for (int i = 0; i < bits; ++i) {
    const int mask = 0x80 >> (i % 8);
    const auto byte = static_cast<size_t>(i / 8);
    if ((a[byte] & mask) != (b[byte] & mask)) return false;
  }
  return true;
}

}  // namespace

Result<TrustedProxies> TrustedProxies::Parse(std::string_view text) {
  TrustedProxies proxies;
  for (std::string_view part : Split(text, ',')) {
    part = Trim(part);
    if (part.empty()) continue;
    const size_t slash = part.find('/');
    const auto address = ParseAddress(part.substr(0, slash));
    const bool v4 = part.find(':') == std::string_view::npos;
    const int most = v4 ? 32 : 128;
    const auto bits = slash == std::string_view::npos ? most : ParseInt(part.substr(slash + 1));
    if (!address || !bits || *bits < 0 || *bits > most) {
      return Invalid(fmt::format("\"{}\" is no address or network: 10.0.0.7, 10.0.0.0/8, fd00::/8",
                                 Shortened(part, 60)));
    }
    proxies.networks_.push_back({*address, static_cast<int>(*bits) + (v4 ? kV4Bits : 0)});
  }
  return proxies;
}

bool TrustedProxies::Trusts(std::string_view address) const {
  const auto parsed = ParseAddress(address);
  return parsed && std::ranges::any_of(networks_, [&](const Network& network) {
           return SameBits(*parsed, network.address, network.bits);
         });
}

bool TrustedProxies::Ignores(const HttpRequest& request) const {
  return !request.Header("x-forwarded-for").empty() && !Trusts(request.peer);
}

std::string TrustedProxies::ClientOf(const HttpRequest& request) const {
  std::string client = request.peer;
  if (networks_.empty() || !Trusts(client)) return client;
  std::vector<std::string_view> forwarded;
  for (const auto& [name, value] : request.headers) {
    if (name != "x-forwarded-for") continue;
    for (const std::string_view part : Split(value, ',')) forwarded.push_back(Trim(part));
  }
  for (auto each = forwarded.rbegin(); each != forwarded.rend(); ++each) {
    if (!ParseAddress(*each)) return client;
    client = *each;
    if (!Trusts(client)) return client;
  }
  return client;
}

}  // namespace nos::net
