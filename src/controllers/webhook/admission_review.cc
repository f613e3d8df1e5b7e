#include "controllers/admission_review.h"

#include <fmt/format.h>

#include <utility>

#include "base/function_ref.h"
#include "base/text.h"
#include "codec/base64.h"
#include "codec/cursor.h"

namespace nos::controllers {
namespace {

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";
// Limits for warnings. Source: k8s.io/apiserver, which truncates longer ones.
constexpr size_t kMaxWarning = 256, kMaxWarnings = 10;

using Visit = FunctionRef<void(std::string_view key, Cursor& value)>;

void MembersOf(Cursor& value, Visit visit) {
  if (value.kind() == Cursor::Kind::kObject) value.Members(visit);
}

std::string ObjectText(Cursor& value) {
  return value.kind() == Cursor::Kind::kNull ? "" : std::string(value.Raw());
}

void ReadRequest(Cursor& request, AdmissionQuestion& to) {
  MembersOf(request, [&](std::string_view key, Cursor& value) {
    if (key == "uid") to.uid = StringOf(value);
    if (key == "operation") to.operation = StringOf(value);
    if (key == "namespace") to.ns = StringOf(value);
    if (key == "object") to.object = ObjectText(value);
    if (key == "dryRun" && value.kind() == Cursor::Kind::kBool) to.dry_run = value.Bool();
    if (key == "oldObject") to.old_object = ObjectText(value);
    if (key != "kind") return;
    MembersOf(value, [&](std::string_view part, Cursor& kind) {
      if (part == "kind") to.kind = StringOf(kind);
    });
  });
}

}  // namespace

Result<AdmissionQuestion> ReadAdmissionReview(std::string_view body) {
  AdmissionQuestion question;
  std::string api_version, kind;
  bool has_request = false;
  NOS_RETURN_IF_ERROR(ReadJson(body, [&](Cursor& root) {
    MembersOf(root, [&](std::string_view key, Cursor& value) {
      if (key == "apiVersion") api_version = StringOf(value);
      if (key == "kind") kind = StringOf(value);
      if (key != "request") return;
      has_request = value.kind() == Cursor::Kind::kObject;
      ReadRequest(value, question);
    });
  }));
  if (api_version != kApiVersion || kind != kKind) {
    return Invalid(fmt::format("expected an {} of {}", kKind, kApiVersion));
  }
  if (!has_request) return Invalid("request: is missing");
  if (question.uid.empty()) return Invalid("request.uid: is missing");
  return question;
}

AdmissionAnswer AnswerTo(const AdmissionQuestion& question, const AdmissionVerdict& verdict) {
  const bool allowed = verdict.refusal.empty();
  JsonObject response{{"uid", question.uid}, {"allowed", allowed}};
  if (!allowed) {
    response["status"] = {{"code", 422}, {"reason", "Invalid"}, {"message", verdict.refusal}};
  } else if (!verdict.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = EncodeBase64(WriteJson(verdict.patch));
  }
  JsonArray warnings;
  for (const std::string& warning : verdict.warnings) {
    if (warnings.size() == kMaxWarnings) break;
    warnings.emplace_back(Shortened(warning, kMaxWarning));
  }
  if (!warnings.empty()) response["warnings"] = std::move(warnings);
  return {200,
          WriteJson(JsonObject{
              {"apiVersion", kApiVersion}, {"kind", kKind}, {"response", std::move(response)}}),
          allowed};
}

}  // namespace nos::controllers
