// IP addresses and networks as CEL's functions take them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nos::cel {

struct IpAddress {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // the first four for IPv4

  friend bool operator==(const IpAddress&, const IpAddress&) = default;

  // Empty for anything else, also for zones and IPv4 addresses mapped into IPv6.
  static std::optional<IpAddress> Parse(std::string_view text);
  std::string ToString() const;

  bool IsUnspecified() const;
  bool IsLoopback() const;
  bool IsMulticast() const;
  bool IsLinkLocalMulticast() const;
  bool IsLinkLocalUnicast() const;
  bool IsGlobalUnicast() const;
};

struct Cidr {
  IpAddress address;
  int bits = 0;

  friend bool operator==(const Cidr&, const Cidr&) = default;

  static std::optional<Cidr> Parse(std::string_view text);
  std::string ToString() const;

  Cidr Masked() const;
  bool Contains(const IpAddress& other) const;
  bool Contains(const Cidr& other) const;
};

}  // namespace nos::cel
