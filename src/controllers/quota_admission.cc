#include "controllers/quota_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/function_ref.h"
#include "base/text.h"
#include "codec/cursor.h"
#include "codec/json.h"
#include "controllers/quota_rules.h"

namespace nos::controllers {
namespace {

using cluster::ElasticQuota;

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";
// Of a warning, as API servers show it. Source: k8s.io/apiserver, which cuts longer ones off.
constexpr size_t kMostWarning = 256, kMostWarnings = 10;
constexpr size_t kMostProblems = 10;

// What of an AdmissionReview matters here. No tree is made of what anybody may send: it would be
// many times as large.
struct Question {
  std::string api_version, review;  // kind of what was sent
  std::string uid, kind, operation;
  std::string object;      // as JSON; empty: it is deleted
  std::string old_object;  // empty: it is new
  bool has_request = false;
};

using Visit = FunctionRef<void(std::string_view key, Cursor& value)>;

void MembersOf(Cursor& value, Visit visit) {
  if (value.kind() == Cursor::Kind::kObject) value.Members(visit);
}

std::string ObjectText(Cursor& value) {
  return value.kind() == Cursor::Kind::kNull ? "" : std::string(value.Raw());
}

void ReadRequest(Cursor& request, Question& to) {
  to.has_request = request.kind() == Cursor::Kind::kObject;
  MembersOf(request, [&](std::string_view key, Cursor& value) {
    if (key == "uid") to.uid = StringOf(value);
    if (key == "operation") to.operation = StringOf(value);
    if (key == "object") to.object = ObjectText(value);
    if (key == "oldObject") to.old_object = ObjectText(value);
    if (key != "kind") return;
    MembersOf(value, [&](std::string_view part, Cursor& kind) {
      if (part == "kind") to.kind = StringOf(kind);
    });
  });
}

Result<Question> ReadQuestion(std::string_view body) {
  Question question;
  NOS_RETURN_IF_ERROR(ReadJson(body, [&](Cursor& root) {
    MembersOf(root, [&](std::string_view key, Cursor& value) {
      if (key == "apiVersion") question.api_version = StringOf(value);
      if (key == "kind") question.review = StringOf(value);
      if (key == "request") ReadRequest(value, question);
    });
  }));
  if (question.api_version != kApiVersion || question.review != kKind) {
    return Invalid(fmt::format("expected an {} of {}", kKind, kApiVersion));
  }
  if (!question.has_request) return Invalid("request: is missing");
  if (question.uid.empty()) return Invalid("request.uid: is missing");
  return question;
}

struct Verdict {
  std::string refusal;  // empty: it is allowed
  std::vector<std::string> warnings;
};

Result<ElasticQuota> ReadQuota(const std::string& object, std::string_view kind) {
  ElasticQuota quota;
  NOS_RETURN_IF_ERROR(kind == cluster::kCompositeQuota ? ReadCompositeElasticQuota(object, quota)
                                                       : ReadElasticQuota(object, quota));
  return quota;
}

// As text: an API server writes both alike.
std::string SpecOf(const std::string& object) {
  std::string spec;
  const Status read = ReadJson(object, [&](Cursor& root) {
    MembersOf(root, [&](std::string_view key, Cursor& value) {
      if (key == "spec") spec = value.Raw();
    });
  });
  return read.ok() ? spec : "";
}

Verdict Judge(const Question& question, const std::vector<quota::SharedQuota>& quotas) {
  const bool known =
      question.kind == cluster::kElasticQuota || question.kind == cluster::kCompositeQuota;
  const bool written = question.operation == "CREATE" || question.operation == "UPDATE";
  if (!known || !written || question.object.empty()) return {};
  const bool update = question.operation == "UPDATE" && !question.old_object.empty();
  if (update && SpecOf(question.object) == SpecOf(question.old_object)) return {};
  const auto quota = ReadQuota(question.object, question.kind);
  if (!quota.ok()) return {quota.status().message(), {}};
  QuotaFindings after = CheckQuota(*quota, quotas), before;
  if (update) {
    // One that could not be read was no better.
    const auto old = ReadQuota(question.old_object, question.kind);
    if (old.ok()) before = CheckQuota(*old, quotas);
  }
  Verdict verdict{"", std::move(after.warnings)};
  const std::vector<QuotaProblem> problems = NewProblems(before, std::move(after));
  for (size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i) {
    verdict.refusal += (i == 0 ? "" : "; ") + problems[i].text;
  }
  if (problems.size() > kMostProblems) {
    verdict.refusal += fmt::format("; and {} more", problems.size() - kMostProblems);
  }
  return verdict;
}

std::string AnswerTo(const Question& question, const Verdict& verdict) {
  JsonObject response{{"uid", question.uid}, {"allowed", verdict.refusal.empty()}};
  if (!verdict.refusal.empty()) {
    response["status"] = {{"code", 422}, {"reason", "Invalid"}, {"message", verdict.refusal}};
  }
  JsonArray warnings;
  for (const std::string& warning : verdict.warnings) {
    if (warnings.size() == kMostWarnings) break;
    warnings.emplace_back(Shortened(warning, kMostWarning));
  }
  if (!warnings.empty()) response["warnings"] = std::move(warnings);
  return WriteJson(
      JsonObject{{"apiVersion", kApiVersion}, {"kind", kKind}, {"response", std::move(response)}});
}

}  // namespace

void QuotaAdmission::SetQuotas(std::vector<quota::SharedQuota> quotas) {
  auto shared = std::make_shared<const std::vector<quota::SharedQuota>>(std::move(quotas));
  const std::scoped_lock lock(mutex_);
  quotas_ = std::move(shared);
}

QuotaAdmission::Quotas QuotaAdmission::Known() const {
  const std::scoped_lock lock(mutex_);
  return quotas_;
}

Status QuotaAdmission::Ready() const {
  return Known() != nullptr ? Status::Ok()
                            : Status(Code::kUnavailable, "the quotas have not been read yet");
}

QuotaAdmission::Answer QuotaAdmission::Review(std::string_view body) const {
  const Quotas quotas = Known();
  if (quotas == nullptr) return {503, Ready().message() + "\n", false};
  const auto question = ReadQuestion(body);
  if (!question.ok()) return {400, question.status().message() + "\n", false};
  const Verdict verdict = Judge(*question, *quotas);
  return {200, AnswerTo(*question, verdict), verdict.refusal.empty()};
}

}  // namespace nos::controllers
