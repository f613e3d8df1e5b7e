#include "controllers/quota_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
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

// What of an AdmissionReview matters here. Refers to its tree.
struct Question {
  std::string uid, kind, operation;
  const Json* object = nullptr;      // null: it is deleted
  const Json* old_object = nullptr;  // null: it is new
};

const Json* Given(const Json& request, std::string_view key) {
  const Json* found = Find(request, key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

Result<Question> ReadQuestion(const Json& review) {
  if (FindString(review, "apiVersion") != kApiVersion || FindString(review, "kind") != kKind) {
    return Invalid(fmt::format("expected an {} of {}", kKind, kApiVersion));
  }
  const Json* request = Find(review, "request");
  if (request == nullptr || !request->is_object()) return Invalid("request: is missing");
  Question question{std::string(FindString(*request, "uid")),
                    std::string(FindString(*request, "kind", "kind")),
                    std::string(FindString(*request, "operation")), Given(*request, "object"),
                    Given(*request, "oldObject")};
  if (question.uid.empty()) return Invalid("request.uid: is missing");
  return question;
}

struct Verdict {
  std::string refusal;  // empty: it is allowed
  std::vector<std::string> warnings;
};

Result<ElasticQuota> ReadQuota(const Json& object, std::string_view kind) {
  ElasticQuota quota;
  NOS_RETURN_IF_ERROR(kind == cluster::kCompositeQuota ? ReadCompositeElasticQuota(object, quota)
                                                       : ReadElasticQuota(object, quota));
  return quota;
}

bool SameSpec(const Json& a, const Json& b) {
  const Json *one = Find(a, "spec"), *other = Find(b, "spec");
  return one == nullptr || other == nullptr ? one == other : *one == *other;
}

Verdict Judge(const Question& question, const std::vector<quota::SharedQuota>& quotas) {
  const bool known =
      question.kind == cluster::kElasticQuota || question.kind == cluster::kCompositeQuota;
  const bool written = question.operation == "CREATE" || question.operation == "UPDATE";
  if (!known || !written || question.object == nullptr) return {};
  const bool update = question.operation == "UPDATE" && question.old_object != nullptr;
  if (update && SameSpec(*question.object, *question.old_object)) return {};
  const auto quota = ReadQuota(*question.object, question.kind);
  if (!quota.ok()) return {quota.status().message(), {}};
  QuotaFindings after = CheckQuota(*quota, quotas), before;
  if (update) {
    // One that could not be read was no better.
    const auto old = ReadQuota(*question.old_object, question.kind);
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
  const auto review = ParseJson(body);
  const auto question = review.ok() ? ReadQuestion(*review) : Result<Question>(review.status());
  if (!question.ok()) return {400, question.status().message() + "\n", false};
  const Verdict verdict = Judge(*question, *quotas);
  return {200, AnswerTo(*question, verdict), verdict.refusal.empty()};
}

}  // namespace nos::controllers
