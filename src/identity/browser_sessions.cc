#include "identity/browser_sessions.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "identity/base64url.h"

namespace nos::identity {
namespace {

constexpr size_t kTime = 8, kRandom = 24;  // bytes of a state, before its signature

// "" if there are none: better no sign-in than one that can be guessed.
std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  const int made =
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count));
  return made == 1 ? bytes : std::string();
}

std::string BytesOf(Time time) {
  auto count = static_cast<uint64_t>(time.time_since_epoch().count());
  std::string bytes(kTime, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(count & 0xff);
    count >>= 8;
  }
  return bytes;
}

Time TimeOf(std::string_view bytes) {
  uint64_t count = 0;
  for (size_t i = kTime; i-- > 0;) count = count << 8 | static_cast<unsigned char>(bytes[i]);
  return Time(Duration(static_cast<int64_t>(count)));
}

bool AreSame(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string HashOf(const std::string& text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {digest.begin(), digest.end()};
}

}  // namespace

template <typename T>
void BrowserSessions::Add(Entries<T>& entries, const std::string& id, Entry<T> entry, size_t most,
                          Time now) {
  if (entries.size() >= most) {
    std::erase_if(entries, [&](const auto& other) { return other.second.until <= now; });
  }
  if (entries.size() >= most) {
    entries.erase(std::ranges::min_element(entries, {},
                                           [](const auto& other) { return other.second.until; }));
  }
  entries.insert_or_assign(HashOf(id), std::move(entry));
}

BrowserSessions::BrowserSessions(Options options)
    : options_(options), key_(RandomBytes(SHA256_DIGEST_LENGTH)) {}

// `use`: keeps one signature from serving for another.
std::string BrowserSessions::Sign(std::string_view use, std::string_view text) const {
  const std::string signed_text = std::string(use) + '\0' + std::string(text);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(),
       digest.data(), &size);
  return {digest.begin(), digest.begin() + size};
}

SignIn BrowserSessions::SignInOf(std::string state) const {
  const std::string nonce = EncodeBase64Url(Sign("nonce", state));
  const std::string verifier = EncodeBase64Url(Sign("verifier", state));
  return {std::move(state), nonce, verifier};
}

SignIn BrowserSessions::Begin(Time now) const {
  const std::string random = RandomBytes(kRandom);
  if (key_.empty() || random.empty()) return {};
  const std::string text = BytesOf(now + options_.sign_in_time) + random;
  return SignInOf(EncodeBase64Url(text + Sign("state", text)));
}

std::optional<SignIn> BrowserSessions::Return(const std::string& state, Time now) {
  const auto bytes = DecodeBase64Url(state);
  if (key_.empty() || !bytes.ok() || bytes->size() <= kTime + kRandom) return std::nullopt;
  const std::string text = bytes->substr(0, kTime + kRandom);
  const Time until = TimeOf(text);
  if (!AreSame(Sign("state", text), std::string_view(*bytes).substr(text.size()))) {
    return std::nullopt;
  }
  const std::scoped_lock lock(mutex_);
  if (until <= now || returned_.contains(HashOf(text))) return std::nullopt;
  Add(returned_, text, {true, until}, options_.max_returned, now);
  return SignInOf(state);
}

std::string BrowserSessions::Open(Json subject, Time now) {
  std::string id = EncodeBase64Url(RandomBytes(32));
  const std::scoped_lock lock(mutex_);
  Add(sessions_, id, {std::move(subject), now + options_.lifetime}, options_.max_sessions, now);
  return id;
}

std::optional<Json> BrowserSessions::Find(const std::string& id, Time now) const {
  const std::string hash = HashOf(id);
  const std::scoped_lock lock(mutex_);
  const auto found = sessions_.find(hash);
  if (found == sessions_.end() || found->second.until <= now) return std::nullopt;
  return found->second.what;
}

void BrowserSessions::Close(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  sessions_.erase(HashOf(id));
}

}  // namespace nos::identity
