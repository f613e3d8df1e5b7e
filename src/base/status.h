// Status and Result: errors are values, and their codes say what the caller should do next.
//
//   Result<int> Parse(std::string_view text);
//   Status Run() {
//     NOS_ASSIGN(int n, Parse("7"));        // returns the error, or declares n
//     NOS_RETURN_IF_ERROR(Apply(n));
//     return Status::Ok();
//   }
//
// A verdict ("this pod does not fit") is not an error; it has its own type where it occurs.
// Both types are plain values and may be used from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace nos {

enum class Code {
  kOk,
  kInvalid,        // the input is wrong: give up and report it to its author
  kNotFound,       // the object is gone: usually nothing left to do
  kAlreadyExists,  // another writer created it first: re-read and compare
  kConflict,       // the object changed meanwhile: re-read and recompute
  kUnavailable,    // try again with back-off
  kDeadline,       // timed out, outcome unknown: re-read, then retry
  kPermission,     // not allowed: give up and report it to the operator
  kExhausted,      // a limit is reached: try again when something is released
  kUnimplemented,  // not supported here: give up
  kInternal,       // an invariant is broken: give up and report a bug
};

// The code's name as printed in messages, e.g. "not found".
std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status Ok() { return {}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with the caller's context in front: "patch node gpu-7: " + message.
  Status Within(std::string_view context) const;
  // "not found: pods \"a\" not found".
  std::string ToString() const;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status Invalid(std::string message) { return {Code::kInvalid, std::move(message)}; }
inline Status NotFound(std::string message) { return {Code::kNotFound, std::move(message)}; }
inline Status Internal(std::string message) { return {Code::kInternal, std::move(message)}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(*-explicit-*)
  Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  // The error, or OK.
  Status status() const { return ok() ? Status::Ok() : std::get<1>(state_); }

  // REQUIRES: ok().
  const T& value() const& { return std::get<0>(state_); }
  T& value() & { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  T value_or(T fallback) const {
    if (ok()) return value();
    return fallback;
  }

 private:
  std::variant<T, Status> state_;
};

#define NOS_RETURN_IF_ERROR(expr)                                                  \
  do {                                                                             \
    if (::nos::Status nos_status_ = (expr); !nos_status_.ok()) return nos_status_; \
  } while (false)

#define NOS_CONCAT_INNER_(a, b) a##b
#define NOS_CONCAT_(a, b) NOS_CONCAT_INNER_(a, b)
#define NOS_ASSIGN(declaration, expr) \
  NOS_ASSIGN_IMPL_(NOS_CONCAT_(nos_result_, __LINE__), declaration, expr)
#define NOS_ASSIGN_IMPL_(result, declaration, expr) \
  auto result = (expr);                             \
  if (!result.ok()) return result.status();         \
  declaration = std::move(result).value()

}  // namespace nos
