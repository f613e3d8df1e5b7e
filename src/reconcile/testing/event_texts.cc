#include "reconcile/testing/event_texts.h"

#include <cctype>
#include <string_view>

namespace nos::reconcile::testing {
namespace {

bool BeginsWithVerb(std::string_view message) {
  const std::string_view word = message.substr(0, message.find(' '));
  return !word.empty() && std::isupper(static_cast<unsigned char>(word.front())) != 0 &&
         (word.ends_with("ing") || word.ends_with("ed"));
}

}  // namespace

std::string EventsWithoutVerb(const kube::FakeApi& api) {
  std::string all;
  for (const Json& event : api.All("events")) {
    const std::string message(FindString(event, "message"));
    if (BeginsWithVerb(message)) continue;
    all += std::string(FindString(event, "reason")) + ": " + message + '\n';
  }
  return all;
}

}  // namespace nos::reconcile::testing
