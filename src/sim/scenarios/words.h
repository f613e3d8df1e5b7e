// One line of a scenario as a sequence of words. Internal to this folder.
//
//   Words words("cordon n1  # comment", "a.scenario:7");
//   if (words.TakeIf("cordon")) node = words.Require("a node name");
//   NOS_RETURN_IF_ERROR(words.End());
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace nos::sim {

class Words {
 public:
  // `line` must outlive the object. A '#' at the start of a word begins a comment.
  Words(std::string_view line, std::string where);

  bool empty() const { return next_ >= words_.size(); }
  std::string_view Peek() const { return empty() ? std::string_view() : words_[next_]; }
  std::string_view Take() { return empty() ? std::string_view() : words_[next_++]; }
  // Takes the next word if it equals `word`.
  bool TakeIf(std::string_view word);
  // Takes the next word. Error: no word is left; `what` describes the missing word: "a node name".
  Result<std::string> Require(std::string_view what);
  Result<int> RequireInt(std::string_view what);
  // All remaining words, joined by single spaces.
  std::string Rest();
  // Error if a word is left.
  Status End() const;
  // "FILE:LINE: expected `what`, got 'x'".
  Status Expected(std::string_view what, std::string_view got) const;
  Status Fail(std::string_view message) const;

 private:
  std::string where_;
  std::vector<std::string_view> words_;
  size_t next_ = 0;
};

}  // namespace nos::sim
