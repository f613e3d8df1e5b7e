// Formats a study of the scaling simulation as JSON and as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/table.h"
#include "study/scaling/study.h"

namespace nos::study {
namespace {

Json RunToJson(const ScalingReport& run) {
  return JsonObject{{"policy", ScalingPolicyName(run.policy)},
                    {"layout", run.layout},
                    {"window", run.window},
                    {"seed", run.seed},
                    {"jobs", run.jobs},
                    {"leftOut", run.left_out},
                    {"askedGpuHours", run.asked_gpu_hours},
                    {"nodeHours", run.node_hours},
                    {"cost", run.cost},
                    {"meanWaitSeconds", run.mean_wait},
                    {"p95WaitSeconds", run.p95_wait},
                    {"mostNodes", run.max_nodes},
                    {"moves", run.moves}};
}

Json PairToJson(const ScalingPair& pair) {
  const auto run = [](const std::optional<ScalingReport>& of) {
    return of ? RunToJson(*of) : Json(nullptr);
  };
  return JsonObject{{"policy", ScalingPolicyName(pair.policy)},
                    {"tuned", pair.nos_is_tuned ? "nos" : "baseline"},
                    {"seed", pair.seed},
                    {"saved", pair.complete() ? Json(pair.Saved()) : Json(nullptr)},
                    {"baseline", run(pair.baseline)},
                    {"nos", run(pair.nos)}};
}

template <typename Of, typename Get>
double Mean(const std::vector<const Of*>& all, Get get) {
  double sum = 0;
  for (const Of* one : all) sum += static_cast<double>(get(*one));
  return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

// Standard deviation over the seeds; "-" for a single seed.
std::string Spread(const std::vector<const ScalingReport*>& runs) {
  if (runs.size() < 2) return "-";
  const double mean = Mean(runs, [](const ScalingReport& run) { return run.cost; });
  double sum = 0;
  for (const ScalingReport* run : runs) sum += (run->cost - mean) * (run->cost - mean);
  return fmt::format("{:.1f}", std::sqrt(sum / static_cast<double>(runs.size() - 1)));
}

void AddRuns(const std::vector<const ScalingReport*>& runs, TextTable& table) {
  const auto mean = [&](auto get) { return fmt::format("{:.1f}", Mean(runs, get)); };
  const ScalingReport& first = *runs.front();
  table.AddRow({std::string(ScalingPolicyName(first.policy)),
                first.layout.empty() ? "-" : first.layout,
                mean([](const ScalingReport& r) { return r.node_hours; }),
                mean([](const ScalingReport& r) { return r.cost; }), Spread(runs),
                mean([](const ScalingReport& r) { return r.mean_wait; }),
                mean([](const ScalingReport& r) { return r.p95_wait; }),
                mean([](const ScalingReport& r) { return r.max_nodes; }),
                mean([](const ScalingReport& r) { return r.moves; }),
                mean([](const ScalingReport& r) { return r.jobs; })});
}

std::string RunsText(const ScalingStudy& study) {
  TextTable table(
      {"POLICY", "LAYOUT", "NODE-H", "COST", "SD", "WAIT", "P95", "NODES", "MOVES", "JOBS"});
  std::vector<std::vector<const ScalingReport*>> groups;
  for (const ScalingReport& run : study.runs) {
    if (run.window != study.window) continue;
    const auto same = std::ranges::find_if(groups, [&](const auto& group) {
      return group.front()->policy == run.policy && group.front()->layout == run.layout;
    });
    if (same == groups.end()) {
      groups.push_back({&run});
    } else {
      same->push_back(&run);
    }
  }
  for (const auto& group : groups) AddRuns(group, table);
  return table.ToString();
}

void AddPairs(const std::vector<const ScalingPair*>& pairs, TextTable& table) {
  std::vector<const ScalingPair*> complete;
  std::ranges::copy_if(pairs, std::back_inserter(complete),
                       [](const ScalingPair* pair) { return pair->complete(); });
  const ScalingPair& first = *pairs.front();
  std::vector<std::string> row = {std::string(ScalingPolicyName(first.policy)),
                                  first.nos_is_tuned ? "nos" : "baseline",
                                  fmt::format("{}/{}", complete.size(), pairs.size())};
  if (complete.empty()) {
    row.insert(row.end(), 6, "-");
    table.AddRow(std::move(row));
    return;
  }
  const auto mean = [&](auto get) { return fmt::format("{:.1f}", Mean(complete, get)); };
  const auto [least, most] = std::ranges::minmax_element(
      complete, {}, [](const ScalingPair* pair) { return pair->Saved(); });
  row.push_back(mean([](const ScalingPair& p) { return p.baseline->cost; }));
  row.push_back(mean([](const ScalingPair& p) { return p.nos->cost; }));
  row.push_back(fmt::format("{:.1f} %",
                            100 * Mean(complete, [](const ScalingPair& p) { return p.Saved(); })));
  row.push_back(fmt::format("{:.1f}..{:.1f}", 100 * (*least)->Saved(), 100 * (*most)->Saved()));
  row.push_back(mean([](const ScalingPair& p) { return p.baseline->mean_wait; }));
  row.push_back(mean([](const ScalingPair& p) { return p.nos->mean_wait; }));
  table.AddRow(std::move(row));
}

std::string PairsText(const ScalingStudy& study) {
  TextTable table(
      {"POLICY", "TUNED", "SEEDS", "COST", "NOS", "SAVED", "LEAST..MOST", "WAIT", "NOS"});
  for (size_t i = 0; i < study.pairs.size();) {
    std::vector<const ScalingPair*> group;
    const ScalingPair& first = study.pairs[i];
    for (; i < study.pairs.size() && study.pairs[i].policy == first.policy &&
           study.pairs[i].nos_is_tuned == first.nos_is_tuned;
         ++i) {
      group.push_back(&study.pairs[i]);
    }
    AddPairs(group, table);
  }
  return table.ToString();
}

}  // namespace

Json ToJson(const ScalingStudy& study) {
  JsonArray runs, pairs;
  for (const ScalingReport& run : study.runs) runs.push_back(RunToJson(run));
  for (const ScalingPair& pair : study.pairs) pairs.push_back(PairToJson(pair));
  return JsonObject{{"trace", study.trace},
                    {"window", study.window},
                    {"runs", std::move(runs)},
                    {"pairs", std::move(pairs)}};
}

std::string ToText(const ScalingStudy& study) {
  std::string text;
  if (!study.runs.empty()) {
    const ScalingReport& first = study.runs.front();
    text = fmt::format(
        "{}\nJobs ask for {:.1f} GPU-hours (seed {}); {} fit on no node and are left out\n"
        "Nodes go {} s after they were last needed; cost in GPU-hours of nodes, waiting in s\n\n",
        Truncate(Printable(study.trace), 100), first.asked_gpu_hours, first.seed, first.left_out,
        study.window);
  }
  text += RunsText(study);
  if (study.pairs.empty()) return text;
  return text +
         "\nAt equal waiting: a tuned autoscaler takes its cheapest window that waits no longer\n" +
         PairsText(study);
}

}  // namespace nos::study
