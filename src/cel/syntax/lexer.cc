#include "cel/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::cel {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (SkipSpace()) {
      const size_t start = at_;
      const TokenKind kind = Next();
      if (kind == TokenKind::kEnd) {
        return Invalid(fmt::format("syntax error at byte {}: unexpected character", start + 1));
      }
      tokens.push_back({kind, source_.substr(start, at_ - start)});
    }
    tokens.push_back({});
    return tokens;
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool StartsWith(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  template <typename Predicate>
  size_t CountWhile(size_t ahead, Predicate predicate) const {
    size_t count = 0;
    while (at_ + ahead + count < source_.size() && predicate(source_[at_ + ahead + count])) ++count;
    return count;
  }

  // False at the end.
  bool SkipSpace() {
    while (at_ < source_.size()) {
      if (IsSpace(source_[at_])) {
        ++at_;
      } else if (StartsWith("//")) {
        at_ = std::min(source_.find('\n', at_), source_.size());
      } else {
        return true;
      }
    }
    return false;
  }

  // Moves behind the token; kEnd if there is none.
  TokenKind Next() {
    const char c = Peek();
    if (const TokenKind kind = TextLiteral(); kind != TokenKind::kEnd) return kind;
    if (IsLetter(c) || c == '_') return Word();
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number();
    if (c == '`') return EscapedIdent();
    return Symbol();
  }

  TokenKind Word() {
    const size_t length =
        CountWhile(0, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
    const std::string_view word = source_.substr(at_, length);
    at_ += length;
    const bool symbol = word == "in" || word == "true" || word == "false" || word == "null";
    return symbol ? TokenKind::kSymbol : TokenKind::kIdent;
  }

  TokenKind Number() {
    if (StartsWith("0x") && IsHex(Peek(2))) {
      at_ += 2;
      at_ += CountWhile(0, IsHex);
      return Unsigned() ? TokenKind::kUint : TokenKind::kInt;
    }
    at_ += CountWhile(0, IsDigit);
    bool fraction = false;
    if (Peek() == '.' && IsDigit(Peek(1))) {
      at_ += 1 + CountWhile(1, IsDigit);
      fraction = true;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      const size_t sign = Peek(1) == '+' || Peek(1) == '-' ? 1 : 0;
      if (const size_t digits = CountWhile(1 + sign, IsDigit); digits > 0) {
        at_ += 1 + sign + digits;
        return TokenKind::kDouble;
      }
    }
    if (fraction) return TokenKind::kDouble;
    return Unsigned() ? TokenKind::kUint : TokenKind::kInt;
  }

  bool Unsigned() {
    if (Peek() != 'u' && Peek() != 'U') return false;
    ++at_;
    return true;
  }

  TokenKind EscapedIdent() {
    const size_t length = CountWhile(1, [](char c) {
      return IsLetter(c) || IsDigit(c) || c == '_' || c == '.' || c == '-' || c == '/' || c == ' ';
    });
    if (length == 0 || Peek(1 + length) != '`') return TokenKind::kEnd;
    at_ += length + 2;
    return TokenKind::kEscapedIdent;
  }

  TokenKind Symbol() {
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "&&", "||"}) {
      if (StartsWith(symbol)) {
        at_ += 2;
        return TokenKind::kSymbol;
      }
    }
    if (std::string_view("<>[]{}().,-!?:+*/%").find(Peek()) == std::string_view::npos) {
      return TokenKind::kEnd;
    }
    ++at_;
    return TokenKind::kSymbol;
  }

  // b"...", r'...', """...""" and so on; kEnd if the next token is none, or is not closed.
  TokenKind TextLiteral() {
    size_t prefix = 0;
    const bool bytes = Peek() == 'b' || Peek() == 'B';
    if (bytes) ++prefix;
    const bool raw = Peek(prefix) == 'r' || Peek(prefix) == 'R';
    if (raw) ++prefix;
    const char quote = Peek(prefix);
    if (quote != '"' && quote != '\'') return TokenKind::kEnd;
    const bool triple = Peek(prefix + 1) == quote && Peek(prefix + 2) == quote;
    size_t length = triple ? Quoted(prefix, quote, 3, raw) : 0;
    if (length == 0) length = Quoted(prefix, quote, 1, raw);
    if (length == 0) return TokenKind::kEnd;
    at_ += length;
    return bytes ? TokenKind::kBytes : TokenKind::kString;
  }

  // The length of the whole token; 0 if it is not closed or has an escape that does not exist.
  size_t Quoted(size_t prefix, char quote, size_t quotes, bool raw) const {
    const std::string closing(quotes, quote);
    size_t i = prefix + quotes;
    while (at_ + i < source_.size()) {
      if (source_.substr(at_ + i).starts_with(closing)) return i + quotes;
      const char c = Peek(i);
      if (quotes == 1 && (c == '\n' || c == '\r')) return 0;
      if (c == '\\' && !raw) {
        const size_t escape = EscapeLength(i);
        if (escape == 0) return 0;
        i += escape;
      } else {
        ++i;
      }
    }
    return 0;
  }

  size_t EscapeLength(size_t i) const {
    const char c = Peek(i + 1);
    const auto digits = [&](size_t count, auto predicate) {
      return CountWhile(i + 2, predicate) >= count ? count + 2 : 0;
    };
    switch (c) {
      case 'x':
      case 'X':
        return digits(2, IsHex);
      case 'u':
        return digits(4, IsHex);
      case 'U':
        return digits(8, IsHex);
      case '0':
      case '1':
      case '2':
      case '3':
        return digits(2, [](char d) { return d >= '0' && d <= '7'; });
      default:
        return c != '\0' && std::string_view("abfnrtv\"'\\?`").find(c) != std::string_view::npos
                   ? 2
                   : 0;
    }
  }

  std::string_view source_;
  size_t at_ = 0;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) { return Lexer(source).Run(); }

}  // namespace nos::cel
