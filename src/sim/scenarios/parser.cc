#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "planning/names.h"
#include "sim/scenarios/parse_cluster.h"
#include "sim/scenarios/parse_steps.h"
#include "sim/scenarios/scenario.h"

namespace nos::sim {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view source) { scenario_.source = source; }

  Result<Scenario> Parse(std::string_view text) && {
    // some editors write it at the start of files
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    int number = 0;
    for (const std::string_view line : Split(text, '\n')) {
      NOS_RETURN_IF_ERROR(ParseLine(line, ++number));
    }
    if (!expects_) {
      return Invalid(
          fmt::format("{}: nothing is expected: add an 'expect' line", scenario_.source));
    }
    return std::move(scenario_);
  }

 private:
  Status ParseLine(std::string_view line, int number) {
    Words words(line, fmt::format("{}:{}", scenario_.source, number));
    if (words.empty()) return Status::Ok();
    const std::string keyword(words.Take());
    if (keyword == "node") return ParseNodeLine(words);
    if (keyword == "gpu") return ParseGpuLine(words);
    if (keyword == "pool" || keyword == "autoscaler") return ParsePoolLine(keyword, words);
    if (keyword == "seed" || keyword == "objective" || keyword == "starvation") {
      return ParseOption(keyword, words);
    }
    if (keyword == "scheduler") return ParseScheduler(words);
    if (keyword == "expect") return ParseExpect(words, line, number);
    NOS_ASSIGN(std::optional<Action> action, ParseOperation(keyword, words));
    if (action) {
      NOS_RETURN_IF_ERROR(Check(*action, words));
      scenario_.steps.push_back({number, std::string(Trim(line)), std::move(*action)});
      return Status::Ok();
    }
    return words.Expected(
        fmt::format(
            "one of {}autoscaler, expect, gpu, node, objective, pool, scheduler, seed, starvation",
            OperationKeywords()),
        keyword);
  }

  // Rejects duplicate pod names here, where the line is known.
  Status Check(const Action& action, const Words& words) {
    const auto* add = std::get_if<AddPods>(&action);
    if (add == nullptr) {
      // A deleted pod's name may be used again.
      const auto* operate = std::get_if<Operate>(&action);
      const bool deletes = operate != nullptr && operate->verb == Operate::Verb::kDeletePod;
      if (deletes)
        std::erase_if(pods_, [&](const auto& pod) { return pod.second == operate->target; });
      return Status::Ok();
    }
    for (const PodSpec& pod : add->pods) {
      if (!pods_.emplace(pod.ns, pod.name).second) {
        return words.Fail(fmt::format("pod '{}' is there already", pod.name));
      }
      if (!pod.node.empty() && !HasNode(pod.node)) {
        return words.Fail(fmt::format("pod '{}' is bound to node '{}', which does not exist",
                                      pod.name, pod.node));
      }
    }
    return Status::Ok();
  }

  bool HasNode(std::string_view name) const {
    return std::any_of(scenario_.nodes.begin(), scenario_.nodes.end(),
                       [&](const NodeSpec& node) { return node.name == name; });
  }

  Status ParseNodeLine(Words& words) {
    if (!scenario_.steps.empty()) return words.Fail("nodes come before all pods and steps");
    NOS_ASSIGN(NodeSpec node, ParseNode(words));
    if (HasNode(node.name)) {
      return words.Fail(fmt::format("node '{}' is there already", node.name));
    }
    scenario_.nodes.push_back(std::move(node));
    described_.clear();
    return Status::Ok();
  }

  // Pools imply an autoscaler.
  Status ParsePoolLine(std::string_view keyword, Words& words) {
    if (!scenario_.steps.empty()) {
      return words.Fail("pools and the autoscaler come before all pods and steps");
    }
    if (!scenario_.autoscaler) scenario_.autoscaler.emplace();
    if (keyword == "autoscaler") return ParseAutoscaler(words, *scenario_.autoscaler);
    NOS_ASSIGN(PoolSpec pool, ParsePool(words));
    const bool there = std::ranges::any_of(
        scenario_.pools, [&](const PoolSpec& other) { return other.name == pool.name; });
    if (there) return words.Fail(fmt::format("pool '{}' is there already", pool.name));
    scenario_.pools.push_back(std::move(pool));
    return Status::Ok();
  }

  Status ParseGpuLine(Words& words) {
    if (scenario_.nodes.empty() || !scenario_.steps.empty()) {
      return words.Fail("'gpu' belongs below the node that has it");
    }
    return ParseGpu(words, scenario_.nodes.back(), described_);
  }

  // "scheduler partitions".
  Status ParseScheduler(Words& words) {
    if (!scenario_.steps.empty()) return words.Fail("'scheduler' comes before all pods and steps");
    NOS_ASSIGN(const std::string what, words.Require("'partitions'"));
    if (what != "partitions") return words.Expected("'partitions'", what);
    scenario_.scheduler_partitions = true;
    return words.End();
  }

  Status ParseOption(std::string_view keyword, Words& words) {
    NOS_ASSIGN(const std::string value, words.Require("a value"));
    if (keyword == "seed") {
      const auto seed = ParseInt(value);
      if (!seed) return words.Expected("a number", value);
      scenario_.seed = static_cast<uint64_t>(*seed);
    } else if (keyword == "starvation") {
      const auto after = ParseDuration(value);
      if (!after.ok()) return words.Expected("a time such as 10m", value);
      scenario_.options.starvation_after = *after;
    } else {
      NOS_RETURN_IF_ERROR(SetObjective(value, words));
    }
    return words.End();
  }

  Status SetObjective(std::string_view value, const Words& words) {
    const auto objective = planning::FindObjective(value);
    if (!objective) return words.Expected("pods, compute or memory", value);
    scenario_.options.objective = *objective;
    return Status::Ok();
  }

  Status ParseExpect(Words& words, std::string_view line, int number) {
    NOS_ASSIGN(std::vector<Action> actions, ParseExpectation(words));
    for (Action& action : actions) {
      scenario_.steps.push_back({number, std::string(Trim(line)), std::move(action)});
    }
    expects_ = true;
    return Status::Ok();
  }

  Scenario scenario_;
  std::set<size_t> described_;                          // GPUs of the current node
  std::set<std::pair<std::string, std::string>> pods_;  // namespace and name of pods that are not
                                                        // deleted
  bool expects_ = false;
};

}  // namespace

Result<Scenario> ParseScenario(std::string_view text, std::string_view source) {
  return Parser(source).Parse(text);
}

}  // namespace nos::sim
