// What the server answers when it refuses: a metav1.Status with the HTTP code, the machine-readable
// reason and the fields at fault, as the real API server words them, because clients (kubectl, our
// own) act on code and reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kube/transport.h"

namespace nos::sim {

struct Cause {
  std::string reason;   // "FieldValueInvalid", "FieldManagerConflict", ...
  std::string field;    // "spec.containers[0].name"
  std::string message;  // "Invalid value: ..."
};

struct Refusal {
  int code = 400;
  std::string reason = "BadRequest";
  std::string message;
  std::string group, kind, name;  // of the object, where known
  std::vector<Cause> causes;
};

// The refusal, or nothing when all is well.
using Check = std::optional<Refusal>;

// A value or a refusal. NOS_ASSIGN works with it in functions that return an Outcome.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT
  Outcome(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  // REQUIRES: !ok().
  const Refusal& status() const { return std::get<1>(state_); }
  // REQUIRES: ok().
  const T& value() const& { return std::get<0>(state_); }
  T& value() & { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Refusal> state_;
};

kube::ApiResponse ToResponse(const Refusal& refusal);
// The metav1.Status alone, as in a watch's ERROR event.
Json ToStatus(const Refusal& refusal);
// {"kind":"Status","status":"Success"} about an object.
Json SuccessStatus(std::string_view group, std::string_view kind, std::string_view name,
                   std::string_view uid);

Refusal BadRequest(std::string message);
Refusal Forbidden(std::string message);
Refusal MethodNotAllowed(std::string_view method);
// No such path.
Refusal UnknownPath();
// Its resourceVersion is no longer (or not yet) in the history.
Refusal Expired(std::string message);

}  // namespace nos::sim
