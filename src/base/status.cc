#include "base/status.h"

namespace nos {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not found";
    case Code::kAlreadyExists:
      return "already exists";
    case Code::kConflict:
      return "conflict";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDeadline:
      return "deadline exceeded";
    case Code::kPermission:
      return "permission denied";
    case Code::kExhausted:
      return "exhausted";
    case Code::kUnimplemented:
      return "not supported";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::Within(std::string_view context) const {
  if (ok()) return *this;
  return {code_, std::string(context) + ": " + message_};
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(CodeName(code_)) + ": " + message_;
}

}  // namespace nos
