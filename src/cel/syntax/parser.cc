#include "cel/syntax/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cel/syntax/lexer.h"
#include "cel/syntax/literals.h"
#include "cel/syntax/macros.h"
#include "cel/values/runes.h"

namespace nos::cel {
namespace {

constexpr int kMaxDepth = 250;

// An expression and how deep operators, selections and calls are nested in it.
struct Node {
  Expr* expr = nullptr;
  int depth = 0;
};

struct SyntaxError {
  std::string message;
};

bool IsReserved(std::string_view name) {
  constexpr std::array kReserved = {"as",        "break",  "const",  "continue", "else", "for",
                                    "function",  "if",     "import", "let",      "loop", "package",
                                    "namespace", "return", "var",    "void",     "while"};
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

class Parser {
 public:
  Parser(std::string_view source, std::vector<Token> tokens, Ast& ast)
      : source_(source), tokens_(std::move(tokens)), ast_(ast) {}

  Expr* Run() {
    const Node node = ParseExpr();
    if (Peek().kind != TokenKind::kEnd) Fail("unexpected token");
    if (node.depth > kMaxDepth) Fail("max recursion depth exceeded");
    return node.expr;
  }

 private:
  // Counts how often a rule of the grammar is active.
  class Nested {
   public:
    Nested(Parser& parser, int& depth) : depth_(depth) {
      if (++depth_ > kMaxDepth) parser.Fail("expression recursion limit exceeded");
    }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    int& depth_;
  };

  [[noreturn]] void Fail(std::string_view cause) const {
    const Token& token = Peek();
    if (token.kind == TokenKind::kEnd) {
      throw SyntaxError{fmt::format("syntax error at the end: {}", cause)};
    }
    throw SyntaxError{fmt::format("syntax error at byte {} ('{}'): {}",
                                  token.text.data() - source_.data() + 1, token.text, cause)};
  }

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool Is(std::string_view symbol, size_t ahead = 0) const {
    return Peek(ahead).kind == TokenKind::kSymbol && Peek(ahead).text == symbol;
  }
  bool Take(std::string_view symbol) {
    if (!Is(symbol)) return false;
    ++at_;
    return true;
  }
  void Expect(std::string_view symbol) {
    if (!Take(symbol)) Fail(fmt::format("expected '{}'", symbol));
  }
  std::string_view Ident() {
    if (Peek().kind != TokenKind::kIdent) Fail("expected an identifier");
    return tokens_[at_++].text;
  }

  Node Call(std::string_view function, const std::vector<Node>& args, int levels) {
    Expr* const call = ast_.New(ExprKind::kCall);
    call->name = function;
    int depth = 0;
    for (const Node& arg : args) {
      call->args.push_back(arg.expr);
      depth = std::max(depth, arg.depth);
    }
    return {call, depth + levels};
  }

  Node ParseExpr() {
    const Nested nested(*this, expr_depth_);
    const Node condition = ParseLogic("||", "_||_");
    if (!Take("?")) return condition;
    const Node yes = ParseLogic("||", "_||_");
    Expect(":");
    const Node no = ParseExpr();
    return Call("_?_:_", {condition, yes, no}, 1);
  }

  // A chain of one operator becomes a balanced tree.
  Node ParseLogic(std::string_view symbol, std::string_view function) {
    const bool is_or = symbol == "||";
    std::vector<Node> terms;
    do {
      terms.push_back(is_or ? ParseLogic("&&", "_&&_") : ParseRelation(0));
    } while (Take(symbol));
    return Balance(function, terms, 0, terms.size());
  }

  Node Balance(std::string_view function, const std::vector<Node>& terms, size_t begin,
               size_t end) {
    if (end - begin == 1) return terms[begin];
    // The operator in the middle of all is the root.
    const size_t operators = end - begin - 1;
    const size_t left = operators / 2 + 1;
    return Call(function,
                {Balance(function, terms, begin, begin + left),
                 Balance(function, terms, begin + left, end)},
                0);
  }

  // `level`: the least binding operator that may follow, as in the grammar that cel-go generates
  // its parser from: the limit counts the same levels.
  Node ParseRelation(int level) {
    const Nested nested(*this, relation_depth_);
    Node left = ParseCalc(0);
    while (level <= 1) {
      const std::string_view function = TakeRelation();
      if (function.empty()) break;
      const Node right = ParseRelation(2);
      left = Call(function, {left, right}, 1);
    }
    return left;
  }

  std::string_view TakeRelation() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kOperators = {
        {{"<", "_<_"},
         {"<=", "_<=_"},
         {">=", "_>=_"},
         {">", "_>_"},
         {"==", "_==_"},
         {"!=", "_!=_"},
         {"in", "@in"}}};
    for (const auto& [symbol, function] : kOperators) {
      if (Take(symbol)) return function;
    }
    return {};
  }

  Node ParseCalc(int level) {
    const Nested nested(*this, calc_depth_);
    Node left = ParseUnary();
    while (true) {
      std::string_view function;
      int right_level = 3;
      if (level <= 2 && (Is("*") || Is("/") || Is("%"))) {
        function = Is("*") ? "_*_" : Is("/") ? "_/_" : "_%_";
      } else if (level <= 1 && (Is("+") || Is("-"))) {
        function = Is("+") ? "_+_" : "_-_";
        right_level = 2;
      } else {
        return left;
      }
      ++at_;
      const Node right = ParseCalc(right_level);
      left = Call(function, {left, right}, 1);
    }
  }

  bool IsNegativeNumber() const {
    return Is("-") && (Peek(1).kind == TokenKind::kInt || Peek(1).kind == TokenKind::kDouble);
  }

  Node ParseUnary() {
    if (IsNegativeNumber() || (!Is("!") && !Is("-"))) return ParseMember();
    const bool negate = Is("-");
    bool odd = false;
    while (Take(negate ? "-" : "!")) odd = !odd;
    const Node operand = ParseMember();
    return odd ? Call(negate ? "-_" : "!_", {operand}, 0) : operand;
  }

  Node ParseMember() {
    Node node = ParsePrimary();
    while (true) {
      if (Take(".")) {
        node = ParseSelect(node);
      } else if (Take("[")) {
        const bool optional = Take("?");
        const Node index = ParseExpr();
        Expect("]");
        node = Call(optional ? "_[?_]" : "_[_]", {node, index}, 1);
      } else {
        return node;
      }
    }
  }

  Node ParseSelect(const Node& operand) {
    const bool optional = Take("?");
    const bool escaped = Peek().kind == TokenKind::kEscapedIdent;
    std::string_view name = escaped ? tokens_[at_++].text : Ident();
    if (escaped) name = name.substr(1, name.size() - 2);
    if (optional) {
      Expr* const field = Literal(Value::String(ast_.arena().Copy(name)));
      return Call("_?._", {operand, {field, 0}}, 1);
    }
    if (!escaped && Take("(")) return ParseMemberCall(operand, name);
    Expr* const select = ast_.New(ExprKind::kSelect);
    select->name = name;
    select->target = operand.expr;
    return {select, operand.depth + 1};
  }

  Node ParseMemberCall(const Node& operand, std::string_view name) {
    const std::vector<Node> args = ParseArguments();
    return {Expand(name, operand.expr, args), std::max(operand.depth, Depth(args)) + 1};
  }

  static int Depth(const std::vector<Node>& nodes) {
    int depth = 0;
    for (const Node& node : nodes) depth = std::max(depth, node.depth);
    return depth;
  }

  // A call of a function or a macro.
  Expr* Expand(std::string_view name, Expr* target, const std::vector<Node>& nodes) {
    std::vector<Expr*> args;
    for (const Node& node : nodes) args.push_back(node.expr);
    auto expanded = ExpandMacro(ast_, name, target, args);
    if (!expanded.ok()) Fail(expanded.status().message());
    if (*expanded != nullptr) return *expanded;
    Expr* const call = ast_.New(ExprKind::kCall);
    call->name = name;
    call->target = target;
    call->args = std::move(args);
    return call;
  }

  // Behind "(".
  std::vector<Node> ParseArguments() {
    std::vector<Node> args;
    if (Take(")")) return args;
    do {
      args.push_back(ParseExpr());
    } while (Take(","));
    Expect(")");
    return args;
  }

  Node ParsePrimary() {
    if (Take("(")) {
      const Node node = ParseExpr();
      Expect(")");
      return node;
    }
    if (Take("[")) return ParseList();
    if (Take("{")) return ParseMap();
    if (Is(".") || Peek().kind == TokenKind::kIdent) return ParseName();
    return {ParseLiteral(), 0};
  }

  // The tokens are a.b.c{.
  bool IsMessage() const {
    size_t i = Is(".") ? 1 : 0;
    while (Peek(i).kind == TokenKind::kIdent) {
      if (Is("{", i + 1)) return true;
      if (!Is(".", i + 1)) return false;
      i += 2;
    }
    return false;
  }

  Node ParseName() {
    if (IsMessage()) return ParseMessage();
    const bool global = Take(".");
    const std::string_view ident = Ident();
    if (IsReserved(ident)) Fail(fmt::format("reserved identifier: {}", ident));
    const std::string name = (global ? "." : "") + std::string(ident);
    if (Take("(")) {
      const std::vector<Node> args = ParseArguments();
      return {Expand(name, nullptr, args), Depth(args)};
    }
    Expr* const expr = ast_.New(ExprKind::kIdent);
    expr->name = name;
    return {expr, 0};
  }

  Node ParseMessage() {
    Expr* const message = ast_.New(ExprKind::kStruct);
    while (!Take("{")) message->name += tokens_[at_++].text;
    int depth = 0;
    while (!Take("}")) {
      if (Take(",")) {
        Expect("}");
        break;
      }
      Take("?");
      if (Peek().kind == TokenKind::kEscapedIdent) {
        ++at_;
      } else {
        Ident();
      }
      Expect(":");
      const Node value = ParseExpr();
      message->args.push_back(value.expr);
      depth = std::max(depth, value.depth);
      if (!Is(",") && !Is("}")) Fail("expected ',' or '}'");
      if (Is(",") && !Is("}", 1)) ++at_;
    }
    return {message, depth};
  }

  // Behind "[".
  Node ParseList() {
    Expr* const list = ast_.New(ExprKind::kList);
    int depth = 0;
    ParseItems("]", [&] {
      MarkOptional(*list, list->args.size());
      const Node element = ParseExpr();
      list->args.push_back(element.expr);
      depth = std::max(depth, element.depth);
    });
    return {list, depth};
  }

  // Behind "{".
  Node ParseMap() {
    Expr* const map = ast_.New(ExprKind::kMap);
    int depth = 0;
    ParseItems("}", [&] {
      MarkOptional(*map, map->args.size() / 2);
      const Node key = ParseExpr();
      Expect(":");
      const Node value = ParseExpr();
      map->args.push_back(key.expr);
      map->args.push_back(value.expr);
      depth = std::max({depth, key.depth, value.depth});
    });
    return {map, depth};
  }

  void MarkOptional(Expr& expr, size_t index) {
    if (!Take("?")) return;
    expr.optional.resize(index + 1);
    expr.optional[index] = true;
  }

  // Items with commas between them and perhaps one behind them.
  template <typename Item>
  void ParseItems(std::string_view closing, Item item) {
    if (Take(",")) {
      Expect(closing);
      return;
    }
    while (!Take(closing)) {
      item();
      if (!Take(",")) {
        Expect(closing);
        return;
      }
    }
  }

  Expr* Literal(Value value) {
    Expr* const literal = ast_.New(ExprKind::kLiteral);
    literal->literal = value;
    return literal;
  }

  Expr* ParseLiteral() {
    const bool negative = IsNegativeNumber() && Take("-");
    const Token token = Peek();
    ++at_;
    std::string_view text = token.text;
    switch (token.kind) {
      case TokenKind::kInt:
        if (const auto value = ParseIntLiteral(text, negative)) return Literal(Value::Int(*value));
        break;
      case TokenKind::kUint:
        text.remove_suffix(1);
        if (const auto value = ParseUintLiteral(text)) return Literal(Value::Uint(*value));
        break;
      case TokenKind::kDouble:
        if (const auto value = ParseDouble(text)) {
          return Literal(Value::Double(negative ? -*value : *value));
        }
        break;
      case TokenKind::kString:
        if (const auto value = Unquote(text, false)) {
          return Literal(Value::String(ast_.arena().Copy(*value)));
        }
        break;
      case TokenKind::kBytes:
        if (const auto value = Unquote(text.substr(1), true)) {
          return Literal(Value::Bytes(ast_.arena().Copy(*value)));
        }
        break;
      case TokenKind::kSymbol:
        if (text == "true" || text == "false") return Literal(Value::Bool(text == "true"));
        if (text == "null") return Literal(Value());
        break;
      default:
        break;
    }
    --at_;
    Fail("expected an expression");
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  Ast& ast_;
  size_t at_ = 0;
  int expr_depth_ = 0;
  int relation_depth_ = 0;
  int calc_depth_ = 0;
};

}  // namespace

Result<std::unique_ptr<Ast>> Parse(std::string_view source) {
  if (!ValidUtf8(source)) return Invalid("syntax error: the expression is not UTF-8");
  NOS_ASSIGN(std::vector<Token> tokens, Tokenize(source));
  auto ast = std::make_unique<Ast>();
  try {
    ast->root = Parser(source, std::move(tokens), *ast).Run();
  } catch (const SyntaxError& error) {
    return Invalid(error.message);
  } catch (const Ast::TooLarge&) {
    return Invalid("the expression is too large after its macros are expanded");
  }
  return ast;
}

}  // namespace nos::cel
