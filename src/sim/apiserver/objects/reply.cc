#include "sim/apiserver/objects/reply.h"

#include <fmt/core.h>

namespace nos::sim {
namespace {

JsonObject Details(const Refusal& refusal) {
  JsonObject details;
  if (!refusal.name.empty()) details["name"] = refusal.name;
  if (!refusal.group.empty()) details["group"] = refusal.group;
  if (!refusal.kind.empty()) details["kind"] = refusal.kind;
  if (refusal.causes.empty()) return details;
  JsonArray& causes = details["causes"].emplace_array();
  for (const Cause& cause : refusal.causes) {
    causes.push_back(
        {{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
  }
  return details;
}

}  // namespace

Json ToStatus(const Refusal& refusal) {
  // `details` is always present: kubectl reads it without a check.
  return {{"kind", "Status"},     {"apiVersion", "v1"},         {"metadata", JsonObject()},
          {"status", "Failure"},  {"message", refusal.message}, {"reason", refusal.reason},
          {"code", refusal.code}, {"details", Details(refusal)}};
}

kube::ApiResponse ToResponse(const Refusal& refusal) { return {refusal.code, ToStatus(refusal)}; }

Json SuccessStatus(std::string_view group, std::string_view kind, std::string_view name,
                   std::string_view uid) {
  JsonObject details{{"name", name}, {"kind", kind}};
  if (!group.empty()) details["group"] = group;
  if (!uid.empty()) details["uid"] = uid;
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", JsonObject()},
          {"status", "Success"},
          {"details", std::move(details)}};
}

Refusal MakeRefusal(int code, std::string reason, std::string message) {
  Refusal refusal;
  refusal.code = code;
  refusal.reason = std::move(reason);
  refusal.message = std::move(message);
  return refusal;
}

Refusal BadRequest(std::string message) {
  return MakeRefusal(400, "BadRequest", std::move(message));
}

Refusal Forbidden(std::string message) { return MakeRefusal(403, "Forbidden", std::move(message)); }

Refusal MethodNotAllowed(std::string_view method) {
  return MakeRefusal(405, "MethodNotAllowed",
                     fmt::format("{} is not supported on this resource", method));
}

Refusal UnknownPath() {
  return MakeRefusal(404, "NotFound", "the server could not find the requested resource");
}

Refusal Expired(std::string message) { return MakeRefusal(410, "Expired", std::move(message)); }

}  // namespace nos::sim
