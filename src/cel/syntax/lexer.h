// Splits an expression into tokens.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::cel {

enum class TokenKind {
  kEnd,
  kIdent,
  kEscapedIdent,  // `a-b`, with the quotes
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kSymbol,  // an operator, a bracket, or one of the words in, true, false, null
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as written
};

// Always ends with kEnd. Error: kInvalid with the place.
Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace nos::cel
