#include <fmt/core.h>

#include "base/table.h"
#include "study/churn/simulation.h"

namespace nos::study {
namespace {

std::string Percent(const ChurnCount& count) {
  const auto share = count.Share();
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

Json ShareToJson(const ChurnCount& count) {
  const auto share = count.Share();
  return share ? Json(*share) : Json(nullptr);
}

std::vector<std::string> Row(const std::string& name, const ChurnCount& count) {
  return {name, std::to_string(count.offered), std::to_string(count.accepted), Percent(count)};
}

}  // namespace

Json ToJson(const ChurnReport& report) {
  const ChurnOptions& o = report.options;
  JsonArray profiles;
  for (size_t i = 0; i < report.profiles.size(); ++i) {
    const ChurnCount& count = report.by_profile[i];
    // All requests for one profile have the same weight, so both shares are equal.
    profiles.push_back(JsonObject{{"profile", report.profiles[i]},
                                  {"offered", count.offered},
                                  {"accepted", count.accepted},
                                  {"acceptedShare", ShareToJson(count)},
                                  {"acceptedComputeShare", ShareToJson(count)}});
  }
  return JsonObject{{"model", o.model->name()},
                    {"gpus", o.gpus},
                    {"mix", o.mix},
                    {"load", o.load},
                    {"arrivals", o.arrivals},
                    {"seed", o.seed},
                    {"policy", PolicyName(o.policy)},
                    {"claims", o.claims},
                    {"maxMoves", o.moves},
                    {"offered", report.requests.offered},
                    {"accepted", report.requests.accepted},
                    {"acceptedShare", ShareToJson(report.requests)},
                    {"acceptedComputeShare", ShareToJson(report.compute)},
                    {"profiles", std::move(profiles)},
                    {"moves", report.moves},
                    {"movesPerAccepted", report.MovesPerAccepted()}};
}

std::string ToText(const ChurnReport& report) {
  const ChurnOptions& o = report.options;
  std::string text = fmt::format("{} on {} x {}, mix {}, load {}, seed {}\n", PolicyName(o.policy),
                                 o.gpus, o.model->name(), o.mix, o.load, o.seed);
  TextTable table({"PROFILE", "OFFERED", "ACCEPTED", "SHARE"});
  for (size_t i = 0; i < report.profiles.size(); ++i) {
    table.AddRow(Row(report.profiles[i], report.by_profile[i]));
  }
  table.AddRow(Row("all", report.requests));
  table.AddRow(Row("compute", report.compute));
  text += table.ToString();
  if (o.moves > 0) {
    text += fmt::format("{} moves, {:.3f} per accepted request\n", report.moves,
                        report.MovesPerAccepted());
  }
  return text;
}

}  // namespace nos::study
