#include "cel/values/url.h"

#include <algorithm>

#include "cel/values/network.h"

namespace nos::cel {
namespace {

enum class Part { kPath, kUser, kHost, kZone, kQuery, kFragment };

bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsOneOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool MustEscape(char c, Part part) {
  if (IsAlpha(c) || IsDigit(c) || IsOneOf(c, "-_.~")) return false;
  switch (part) {
    case Part::kHost:
    case Part::kZone:
      return !IsOneOf(c, "!$&'()*+,;=:[]<>\"");
    case Part::kPath:
      return !IsOneOf(c, "$&+,/:;=@");
    case Part::kUser:
      return !IsOneOf(c, "$&+,;=");
    case Part::kFragment:
      return !IsOneOf(c, "$&+,/:;=?@!()*");
    case Part::kQuery:
      return true;
  }
  return true;
}

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Escape(std::string_view text, Part part) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (!MustEscape(c, part)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

// The byte of "%41" in a host or zone is allowed there.
bool EscapeAllowed(char byte, std::string_view code, Part part) {
  if (part == Part::kHost) return HexDigit(code[1]) >= 8 || code == "%25";
  if (part == Part::kZone) return code == "%25" || byte == ' ' || !MustEscape(byte, Part::kHost);
  return true;
}

std::optional<std::string> Unescape(std::string_view text, Part part) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      const auto byte = static_cast<char>(high * 16 + low);
      if (!EscapeAllowed(byte, text.substr(i, 3), part)) return std::nullopt;
      out += byte;
      i += 2;
    } else if (c == '+' && part == Part::kQuery) {
      out += ' ';
    } else {
      const bool host = part == Part::kHost || part == Part::kZone;
      if (host && static_cast<unsigned char>(c) < 0x80 && MustEscape(c, part)) return std::nullopt;
      out += c;
    }
  }
  return out;
}

// The text as it was written, if it decodes to itself and has only characters that may stand there.
std::string KeepOrEscape(std::string_view raw, std::string_view decoded, Part part) {
  const bool valid = std::all_of(raw.begin(), raw.end(), [&](char c) {
    return IsOneOf(c, "!$&'()*+,;=:@[]%") || !MustEscape(c, part);
  });
  return valid ? std::string(raw) : Escape(decoded, part);
}

bool ValidPort(std::string_view port) {
  return port.empty() || (port[0] == ':' && std::all_of(port.begin() + 1, port.end(), IsDigit));
}

std::pair<std::string_view, std::string_view> Cut(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

struct Parsed {
  std::string scheme;
  std::string opaque;
  std::string user;  // with "@"
  std::string host;
  std::string path;
  std::string escaped_path;
  std::string query;
  bool question = false;
  bool bare_path = false;  // a scheme and a path without a host

  std::string Text() const;
};

std::string Parsed::Text() const {
  std::string text = scheme.empty() ? "" : scheme + ":";
  if (!opaque.empty()) {
    text += opaque;
  } else {
    if (!bare_path && (!scheme.empty() || !host.empty() || !user.empty())) {
      if (!host.empty() || !path.empty() || !user.empty()) text += "//";
      text += user + Escape(host, Part::kHost);
    }
    if (!escaped_path.empty() && escaped_path[0] != '/' && !host.empty()) text += '/';
    text += escaped_path;
  }
  if (question || !query.empty()) text += "?" + query;
  return text;
}

// "[::1%25eth0]:80".
std::optional<std::string> ParseBracketHost(std::string_view host) {
  const size_t close = host.rfind(']');
  if (close == std::string_view::npos || !ValidPort(host.substr(close + 1))) return std::nullopt;
  const std::string_view name = host.substr(1, close - 1);
  const size_t zone = name.find("%25");
  auto address = Unescape(name.substr(0, zone), Part::kHost);
  if (!address) return std::nullopt;
  if (zone != std::string_view::npos) {
    const auto decoded = Unescape(name.substr(zone), Part::kZone);
    if (!decoded || decoded->size() < 2) return std::nullopt;
    *address += *decoded;
  }
  // Parse() knows no zones, and refuses mapped addresses that a URL may have.
  std::string bare = address->substr(0, address->find('%'));
  if (bare.find(':') == std::string::npos) return std::nullopt;
  if (!IpAddress::Parse(bare)) {
    const size_t mapped = bare.find("ffff:");
    if (mapped == std::string::npos) return std::nullopt;
    bare[mapped] = 'e';
    if (!IpAddress::Parse(bare)) return std::nullopt;
  }
  return "[" + *address + "]" + std::string(host.substr(close + 1));
}

std::optional<std::string> ParseHost(std::string_view scheme, std::string_view host) {
  const size_t open = host.rfind('[');
  if (open == 0) return ParseBracketHost(host);
  if (open != std::string_view::npos) return std::nullopt;
  size_t colon = host.find(':');
  if (colon != std::string_view::npos) {
    if (scheme != "http" && scheme != "https") colon = host.rfind(':');
    if (!ValidPort(host.substr(colon))) return std::nullopt;
  }
  return Unescape(host, Part::kHost);
}

std::optional<std::string> ParseUser(std::string_view user) {
  const bool valid = std::all_of(user.begin(), user.end(), [](char c) {
    return IsAlpha(c) || IsDigit(c) || IsOneOf(c, "-._:~!$&'()*+,;=%@");
  });
  if (!valid) return std::nullopt;
  const auto [name, password] = Cut(user, ':');
  const auto decoded_name = Unescape(name, Part::kUser);
  const auto decoded_password = Unescape(password, Part::kUser);
  if (!decoded_name || !decoded_password) return std::nullopt;
  std::string text = Escape(*decoded_name, Part::kUser);
  if (user.find(':') != std::string_view::npos) {
    text += ":" + Escape(*decoded_password, Part::kUser);
  }
  return text + "@";
}

bool ParseAuthority(std::string_view authority, Parsed& url) {
  const size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    auto user = ParseUser(authority.substr(0, at));
    if (!user) return false;
    url.user = std::move(*user);
    authority.remove_prefix(at + 1);
  }
  auto host = ParseHost(url.scheme, authority);
  if (!host) return false;
  url.host = std::move(*host);
  return true;
}

// The scheme in lower case and the rest; none if the text begins with a colon.
bool TakeScheme(std::string_view& rest, std::string& scheme) {
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (IsAlpha(c)) continue;
    if (IsDigit(c) || IsOneOf(c, "+-.")) {
      if (i == 0) return true;
      continue;
    }
    if (c != ':') return true;
    if (i == 0) return false;
    scheme = rest.substr(0, i);
    for (char& letter : scheme) {
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    rest.remove_prefix(i + 1);
    return true;
  }
  return true;
}

std::optional<Parsed> ParseUri(std::string_view text, bool request) {
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
  });
  if (control || (text.empty() && request)) return std::nullopt;
  Parsed url;
  if (text == "*") {
    url.path = url.escaped_path = "*";
    return url;
  }
  std::string_view rest = text;
  if (!TakeScheme(rest, url.scheme)) return std::nullopt;
  if (rest.ends_with('?') && std::count(rest.begin(), rest.end(), '?') == 1) {
    url.question = true;
    rest.remove_suffix(1);
  } else {
    const auto [before, query] = Cut(rest, '?');
    url.query = query;
    rest = before;
  }
  if (!rest.starts_with('/')) {
    if (!url.scheme.empty()) {
      url.opaque = rest;
      return url;
    }
    if (request || Cut(rest, '/').first.find(':') != std::string_view::npos) return std::nullopt;
  }
  const bool authority =
      rest.starts_with("//") && (!url.scheme.empty() || (!request && !rest.starts_with("///")));
  if (authority) {
    rest.remove_prefix(2);
    const size_t slash = std::min(rest.find('/'), rest.size());
    if (!ParseAuthority(rest.substr(0, slash), url)) return std::nullopt;
    rest.remove_prefix(slash);
  } else {
    url.bare_path = !url.scheme.empty() && rest.starts_with('/');
  }
  auto path = Unescape(rest, Part::kPath);
  if (!path) return std::nullopt;
  url.path = std::move(*path);
  url.escaped_path = KeepOrEscape(rest, url.path, Part::kPath);
  return url;
}

std::pair<std::string_view, std::string_view> SplitPort(std::string_view host) {
  std::string_view port;
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && ValidPort(host.substr(colon))) {
    port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, port};
}

}  // namespace

std::string_view Url::Hostname() const { return SplitPort(host).first; }

std::string_view Url::Port() const { return SplitPort(host).second; }

std::vector<std::pair<std::string, std::string>> Url::Query() const {
  std::vector<std::pair<std::string, std::string>> result;
  std::string_view rest = query;
  while (!rest.empty()) {
    const auto [pair, after] = Cut(rest, '&');
    rest = after;
    if (pair.empty() || pair.find(';') != std::string_view::npos) continue;
    const auto [key, value] = Cut(pair, '=');
    auto decoded_key = Unescape(key, Part::kQuery);
    auto decoded_value = Unescape(value, Part::kQuery);
    if (decoded_key && decoded_value) {
      result.emplace_back(std::move(*decoded_key), std::move(*decoded_value));
    }
  }
  return result;
}

bool Url::IsRequestUri(std::string_view text) { return ParseUri(text, true).has_value(); }

const Url* Url::Parse(Arena& arena, std::string_view text) {
  if (!IsRequestUri(text)) return nullptr;
  const auto [before, fragment] = Cut(text, '#');
  const auto parsed = ParseUri(before, false);
  if (!parsed) return nullptr;
  std::string canonical = parsed->Text();
  if (!fragment.empty()) {
    const auto decoded = Unescape(fragment, Part::kFragment);
    if (!decoded) return nullptr;
    if (!decoded->empty()) canonical += "#" + KeepOrEscape(fragment, *decoded, Part::kFragment);
  }
  return arena.New<Url>(arena.Copy(parsed->scheme), arena.Copy(parsed->host),
                        arena.Copy(parsed->escaped_path), arena.Copy(parsed->query),
                        arena.Copy(canonical));
}

}  // namespace nos::cel
