#include "cel/values/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace nos::cel {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "1.2.3.4" into four bytes; no leading zeros.
bool ParseDotted(std::string_view text, uint8_t* out) {
  for (int field = 0; field < 4; ++field) {
    if (field > 0) {
      if (text.empty() || text[0] != '.') return false;
      text.remove_prefix(1);
    }
    int value = 0;
    size_t digits = 0;
    while (digits < text.size() && IsDigit(text[digits])) {
      if (digits == 1 && value == 0) return false;
      value = value * 10 + (text[digits++] - '0');
      if (value > 255) return false;
    }
    if (digits == 0) return false;
    out[field] = static_cast<uint8_t>(value);
    text.remove_prefix(digits);
  }
  return text.empty();
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Moves the groups behind "::" to the end.
bool Expand(std::array<uint8_t, 16>& bytes, size_t used, std::optional<size_t> gap) {
  if (used == 16) return !gap;
  if (!gap) return false;
  const size_t tail = used - *gap;
  std::copy_backward(bytes.begin() + static_cast<int64_t>(*gap),
                     bytes.begin() + static_cast<int64_t>(used), bytes.end());
  std::fill(bytes.begin() + static_cast<int64_t>(*gap), bytes.end() - static_cast<int64_t>(tail),
            uint8_t{0});
  return true;
}

bool ParseGroups(std::string_view text, std::array<uint8_t, 16>& bytes) {
  std::optional<size_t> gap;
  if (text.starts_with("::")) {
    gap = 0;
    text.remove_prefix(2);
    if (text.empty()) return true;
  }
  size_t used = 0;
  while (used < 16) {
    size_t digits = 0;
    uint32_t group = 0;
    for (; digits < text.size() && HexDigit(text[digits]) >= 0; ++digits) {
      if (digits > 3) return false;
      group = group * 16 + static_cast<uint32_t>(HexDigit(text[digits]));
    }
    if (digits == 0) return false;
    if (digits < text.size() && text[digits] == '.') {
      if ((!gap && used != 12) || used + 4 > 16 || !ParseDotted(text, &bytes[used])) return false;
      used += 4;
      text = {};
      break;
    }
    bytes[used++] = static_cast<uint8_t>(group >> 8);
    bytes[used++] = static_cast<uint8_t>(group);
    text.remove_prefix(digits);
    if (text.empty()) break;
    if (text[0] != ':' || text.size() == 1) return false;
    text.remove_prefix(1);
    if (text[0] != ':') continue;
    if (gap) return false;
    gap = used;
    text.remove_prefix(1);
    if (text.empty()) break;
  }
  return text.empty() && Expand(bytes, used, gap);
}

bool MappedV4(const IpAddress& ip) {
  return ip.v6 &&
         std::all_of(ip.bytes.begin(), ip.bytes.begin() + 10, [](int b) { return b == 0; }) &&
         ip.bytes[10] == 0xff && ip.bytes[11] == 0xff;
}

// The first bits of two addresses of one family are equal.
bool SamePrefix(const IpAddress& a, const IpAddress& b, int bits) {
  for (int i = 0; bits > 0; ++i, bits -= 8) {
    const auto mask = static_cast<uint8_t>(bits >= 8 ? 0xff : 0xff << (8 - bits));
    if (((a.bytes[static_cast<size_t>(i)] ^ b.bytes[static_cast<size_t>(i)]) & mask) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  IpAddress ip;
  const size_t first = text.find_first_of(".:%");
  if (first == std::string_view::npos || text[first] == '%') return std::nullopt;
  ip.v6 = text[first] == ':';
  if (!(ip.v6 ? ParseGroups(text, ip.bytes) : ParseDotted(text, ip.bytes.data()))) {
    return std::nullopt;
  }
  if (MappedV4(ip)) return std::nullopt;
  return ip;
}

std::string IpAddress::ToString() const {
  if (!v6) return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
  const auto group = [&](int i) {
    const auto at = static_cast<size_t>(i) * 2;
    return bytes[at] << 8 | bytes[at + 1];
  };
  int gap = -1;
  int gap_end = -1;
  for (int i = 0; i < 8; ++i) {
    int end = i;
    while (end < 8 && group(end) == 0) ++end;
    if (end - i >= 2 && end - i > gap_end - gap) {
      gap = i;
      gap_end = end;
    }
  }
  std::string text;
  for (int i = 0; i < 8; ++i) {
    if (i == gap) {
      text += "::";
      i = gap_end;
      if (i >= 8) break;
    } else if (i > 0) {
      text += ':';
    }
    text += fmt::format("{:x}", group(i));
  }
  return text;
}

bool IpAddress::IsUnspecified() const {
  return std::all_of(bytes.begin(), bytes.end(), [](int b) { return b == 0; });
}

bool IpAddress::IsLoopback() const {
  if (!v6) return bytes[0] == 127;
  return bytes[15] == 1 &&
         std::all_of(bytes.begin(), bytes.end() - 1, [](int b) { return b == 0; });
}

bool IpAddress::IsMulticast() const { return v6 ? bytes[0] == 0xff : (bytes[0] & 0xf0) == 0xe0; }

bool IpAddress::IsLinkLocalMulticast() const {
  if (!v6) return bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0;
  return bytes[0] == 0xff && (bytes[1] & 0x0f) == 2;
}

bool IpAddress::IsLinkLocalUnicast() const {
  if (!v6) return bytes[0] == 169 && bytes[1] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::IsGlobalUnicast() const {
  const bool broadcast =
      !v6 && std::all_of(bytes.begin(), bytes.begin() + 4, [](int b) { return b == 255; });
  return !broadcast && !IsUnspecified() && !IsLoopback() && !IsMulticast() && !IsLinkLocalUnicast();
}

std::optional<Cidr> Cidr::Parse(std::string_view text) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = IpAddress::Parse(text.substr(0, slash));
  std::string_view digits = text.substr(slash + 1);
  if (!address || digits.empty()) return std::nullopt;
  if (digits.size() > 1 && (digits[0] < '1' || digits[0] > '9')) return std::nullopt;
  int bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (bits < 0 || bits > (address->v6 ? 128 : 32)) return std::nullopt;
  return Cidr{*address, bits};
}

std::string Cidr::ToString() const { return fmt::format("{}/{}", address.ToString(), bits); }

Cidr Cidr::Masked() const {
  Cidr masked = *this;
  for (int i = 0; i < 16; ++i) {
    const int kept = std::clamp(bits - i * 8, 0, 8);
    masked.address.bytes[static_cast<size_t>(i)] &= static_cast<uint8_t>(0xff << (8 - kept));
  }
  return masked;
}

bool Cidr::Contains(const IpAddress& other) const {
  return address.v6 == other.v6 && SamePrefix(address, other, bits);
}

bool Cidr::Contains(const Cidr& other) const {
  return address.v6 == other.address.v6 && bits <= other.bits &&
         SamePrefix(address, other.address, bits);
}

}  // namespace nos::cel
