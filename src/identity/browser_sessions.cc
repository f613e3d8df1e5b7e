#include "identity/browser_sessions.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

namespace nos::identity {
namespace {

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

void BrowserSessions::Begin(const SignIn& sign_in, Time now) {
  const std::scoped_lock lock(mutex_);
  Add(sign_ins_, sign_in.state, {sign_in, now + options_.sign_in_time}, options_.most_sign_ins,
      now);
}

std::optional<SignIn> BrowserSessions::Return(const std::string& state, Time now) {
  const std::scoped_lock lock(mutex_);
  const auto found = sign_ins_.extract(HashOf(state));
  if (found.empty() || found.mapped().until <= now) return std::nullopt;
  return found.mapped().what;
}

std::string BrowserSessions::Open(Json subject, Time now) {
  std::string id = BeginSignIn().state;
  const std::scoped_lock lock(mutex_);
  Add(sessions_, id, {std::move(subject), now + options_.lifetime}, options_.most_sessions, now);
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
