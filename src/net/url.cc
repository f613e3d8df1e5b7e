#include "net/url.h"

#include <fmt/core.h>

#include "base/text.h"

namespace nos::net {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

Status CheckSegment(std::string_view segment) {
  if (segment == "." || segment == "..") return Invalid("the path has a '.' or '..' segment");
  for (const char c : segment) {
    if (c == '/') return Invalid("the path has an encoded slash");
    if (IsControl(c)) return Invalid("the path has a control character");
  }
  return Status::Ok();
}

Result<std::string> DecodePath(std::string_view raw) {
  std::string path;
  for (const std::string_view part : Split(raw.substr(1), '/')) {
    NOS_ASSIGN(const std::string segment, PercentDecode(part));
    NOS_RETURN_IF_ERROR(CheckSegment(segment));
    path += '/' + segment;
  }
  return path;
}

}  // namespace

Result<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
      if (low < 0) return Invalid(fmt::format("bad percent-encoding at byte {}", i));
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

Result<Target> ParseTarget(std::string_view target) {
  if (target.empty() || target[0] != '/') return Invalid("the request target is not a path");
  const size_t mark = target.find('?');
  Target result;
  NOS_ASSIGN(result.path, DecodePath(target.substr(0, mark)));
  if (mark == std::string_view::npos) return result;
  for (const std::string_view pair : Split(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    NOS_ASSIGN(std::string key, PercentDecode(pair.substr(0, equals), true));
    std::string value;
    if (equals != std::string_view::npos) {
      NOS_ASSIGN(value, PercentDecode(pair.substr(equals + 1), true));
    }
    result.query.emplace_back(std::move(key), std::move(value));
  }
  return result;
}

}  // namespace nos::net
