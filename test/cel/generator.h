// Makes expressions at random: most have correct types, some do not, some are no expressions.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace nos::cel {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  std::string Next();

 private:
  struct Variable {
    char type;
    std::string name;
  };

  size_t Below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random_);
  }
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }
  // An expression of a type: 'B'ool, 'I'nt and so on (generator.cc).
  std::string Make(char type, int depth);
  std::string Fill(std::string_view form, int depth);
  std::string Damage(std::string text);

  std::mt19937_64 random_;
  std::vector<Variable> scope_;
  int next_variable_ = 0;
  size_t length_ = 0;
};

}  // namespace nos::cel
