// Random choices of the generator.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "base/random.h"
#include "codec/json.h"

namespace nos::differential {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  bool Chance(double probability) { return random_.Chance(probability); }
  // Both ends are included.
  int Between(int least, int most) {
    return least + static_cast<int>(random_.Below(static_cast<uint64_t>(most - least + 1)));
  }
  std::string Of(std::initializer_list<const char*> texts) {
    return *(texts.begin() + random_.Below(texts.size()));
  }
  const std::string& Of(const std::vector<std::string>& texts) {
    return texts[random_.Below(texts.size())];
  }
  // A random subset, in order.
  JsonArray Some(const std::vector<std::string>& texts, double probability) {
    JsonArray some;
    for (const std::string& text : texts) {
      if (Chance(probability)) some.emplace_back(text);
    }
    return some;
  }
  // One or two of them.
  JsonArray Few(const std::vector<std::string>& texts) {
    const std::string first = Of(texts), second = Of(texts);
    JsonArray few{Json(first)};
    if (first != second && Chance(0.5)) few.emplace_back(second);
    return few;
  }

 private:
  Random random_;
};

}  // namespace nos::differential
