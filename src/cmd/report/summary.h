// Output of `nos report`: what the GPUs of a cluster did in a time, and what repartitioning and
// quotas brought, from answers of a telemetry server. Pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "codec/json.h"

namespace nos::cmd {

struct ReportAnswers {
  Json savings;  // of GET savings
  Json cost;     // of GET cost by namespace; null: the server computes none
};

// Error: kInvalid: the answers are not those of a telemetry server of this version.
Status CheckAnswers(const ReportAnswers& answers);

// Lines of at most `width` characters. REQUIRES, here and below: CheckAnswers accepts the answers.
std::string ReportText(const ReportAnswers& answers, size_t width);
Json ReportJson(const ReportAnswers& answers);
std::string ReportHtml(const ReportAnswers& answers);

}  // namespace nos::cmd
