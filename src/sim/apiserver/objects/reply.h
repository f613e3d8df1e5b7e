// Refusals: a metav1.Status with the HTTP code, the machine-readable reason and the faulty fields.
// Code and reason are those of the real API server, because clients (kubectl and nos) depend on
// them.
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
  std::string group, kind, name;  // of the object, if known
  std::vector<Cause> causes;
};

// A refusal; nullopt means success.
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
// {"kind":"Status","status":"Success"} with the object in `details`.
Json SuccessStatus(std::string_view group, std::string_view kind, std::string_view name,
                   std::string_view uid);

Refusal MakeRefusal(int code, std::string reason, std::string message);
Refusal BadRequest(std::string message);
Refusal Forbidden(std::string message);
Refusal MethodNotAllowed(std::string_view method);
// 404: the path is not served.
Refusal UnknownPath();
// 410: the resourceVersion is not in the history (any more, or yet).
Refusal Expired(std::string message);

}  // namespace nos::sim
