#include "identity/base64url.h"

#include <algorithm>

#include "codec/base64.h"

namespace nos::identity {

std::string EncodeBase64Url(std::string_view bytes) {
  std::string text = EncodeBase64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

Result<std::string> DecodeBase64Url(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (text.find_first_not_of(kAlphabet) != std::string_view::npos) {
    return Invalid("not base64url");
  }
  std::string padded(text);
  std::ranges::replace(padded, '-', '+');
  std::ranges::replace(padded, '_', '/');
  padded.resize((padded.size() + 3) / 4 * 4, '=');
  return DecodeBase64(padded);
}

}  // namespace nos::identity
