// Formats a report of the openb protocol as JSON and as text.
#include <fmt/format.h>

#include "base/table.h"
#include "study/openb/replay.h"

namespace nos::study {
namespace {

constexpr int kPrintedStep = 10;  // percent

std::string Percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

}  // namespace

Json ToJson(const OpenbReport& report) {
  JsonArray curve;
  for (const OpenbReport::Point& point : report.curve) {
    curve.push_back(JsonObject{{"arrivedPercent", point.arrived_percent},
                               {"allocatedShare", point.allocated_share}});
  }
  return JsonObject{{"policy", report.policy},
                    {"inflation", report.inflation},
                    {"seed", report.seed},
                    {"nodes", report.nodes},
                    {"gpus", report.gpus},
                    {"arrivedPods", report.arrived_pods},
                    {"placedPods", report.placed_pods},
                    {"droppedPods", report.arrived_pods - report.placed_pods},
                    {"arrivedShare", report.arrived_share},
                    {"firstDroppedAt", report.first_dropped_at},
                    {"allocatedShare", report.allocated_share},
                    {"curve", std::move(curve)}};
}

std::string ToText(const OpenbReport& report) {
  const double unused = static_cast<double>(report.gpus) * (1 - report.allocated_share);
  std::string text = fmt::format(
      "Policy {}, seed {}: {} pods on {} nodes with {} GPUs\n"
      "Allocated {} of the GPUs ({:.1f} left) after pods asked for {}\n",
      report.policy, report.seed, report.arrived_pods, report.nodes, report.gpus,
      Percent(report.allocated_share), unused, Percent(report.arrived_share));
  const size_t dropped = report.arrived_pods - report.placed_pods;
  text += dropped == 0 ? "Every pod was placed\n"
                       : fmt::format("{} pods fitted nowhere, the first at {} arrived\n", dropped,
                                     Percent(report.first_dropped_at));
  TextTable table({"ARRIVED", "ALLOCATED"});
  for (const OpenbReport::Point& point : report.curve) {
    if (point.arrived_percent % kPrintedStep != 0) continue;
    table.AddRow({fmt::format("{} %", point.arrived_percent), Percent(point.allocated_share)});
  }
  return text + "\n" + table.ToString();
}

}  // namespace nos::study
