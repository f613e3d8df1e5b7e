#include "gpu/product_words.h"

#include <utility>

#include "base/text.h"

namespace nos::gpu {

std::vector<std::string> ProductWords(std::string_view product) {
  constexpr size_t kMaxLength = 256;
  std::vector<std::string> words;
  std::string word;
  const std::string text = ToLower(product.substr(0, kMaxLength)) + ' ';
  for (const char c : text) {
    if (c != ' ' && c != '-' && c != '_') {
      word += c;
    } else if (word == "mig") {
      break;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

bool ContainsInOrder(const std::vector<std::string>& words,
                     const std::vector<std::string>& pattern) {
  size_t matched = 0;
  for (const std::string& word : words) {
    if (matched < pattern.size() && word == pattern[matched]) ++matched;
  }
  return matched > 0 && matched == pattern.size();
}

}  // namespace nos::gpu
