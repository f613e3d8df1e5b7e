#include "controllers/quota_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codec/cursor.h"
#include "controllers/quota_rules.h"

namespace nos::controllers {
namespace {

using cluster::ElasticQuota;

constexpr size_t kMaxProblems = 10;

Result<ElasticQuota> ReadQuota(const std::string& object, std::string_view kind) {
  ElasticQuota quota;
  NOS_RETURN_IF_ERROR(kind == cluster::kCompositeQuota ? ReadCompositeElasticQuota(object, quota)
                                                       : ReadElasticQuota(object, quota));
  return quota;
}

// Compared as text, because an API server encodes both objects alike.
std::string SpecOf(const std::string& object) {
  std::string spec;
  const Status read = ReadJson(object, [&](Cursor& root) {
    if (root.kind() != Cursor::Kind::kObject) return;
    root.Members([&](std::string_view key, Cursor& value) {
      if (key == "spec") spec = value.Raw();
    });
  });
  return read.ok() ? spec : "";
}

AdmissionVerdict VerdictOn(const AdmissionQuestion& question,
                           const std::vector<quota::SharedQuota>& quotas) {
  const bool known =
      question.kind == cluster::kElasticQuota || question.kind == cluster::kCompositeQuota;
  const bool written = question.operation == "CREATE" || question.operation == "UPDATE";
  if (!known || !written || question.object.empty()) return {};
  const bool update = question.operation == "UPDATE" && !question.old_object.empty();
  if (update && SpecOf(question.object) == SpecOf(question.old_object)) return {};
  const auto quota = ReadQuota(question.object, question.kind);
  if (!quota.ok()) return {.refusal = quota.status().message()};
  QuotaFindings after = CheckQuota(*quota, quotas), before;
  if (update) {
    // An unreadable old version excuses nothing.
    const auto old = ReadQuota(question.old_object, question.kind);
    if (old.ok()) before = CheckQuota(*old, quotas);
  }
  AdmissionVerdict verdict{.warnings = std::move(after.warnings)};
  const std::vector<QuotaProblem> problems = NewProblems(before, std::move(after));
  for (size_t i = 0; i < std::min(problems.size(), kMaxProblems); ++i) {
    verdict.refusal += (i == 0 ? "" : "; ") + problems[i].text;
  }
  if (problems.size() > kMaxProblems) {
    verdict.refusal += fmt::format("; and {} more", problems.size() - kMaxProblems);
  }
  return verdict;
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

AdmissionAnswer QuotaAdmission::Review(std::string_view body) const {
  const Quotas quotas = Known();
  if (quotas == nullptr) return {503, Ready().message() + "\n", false};
  const auto question = ReadAdmissionReview(body);
  if (!question.ok()) return {400, question.status().message() + "\n", false};
  return AnswerTo(*question, VerdictOn(*question, *quotas));
}

}  // namespace nos::controllers
