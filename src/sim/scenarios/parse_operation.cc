#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "sim/scenarios/parse_cluster.h"
#include "sim/scenarios/parse_steps.h"

namespace nos::sim {
namespace {

using Verb = Operate::Verb;
using Parser = Result<Action> (*)(Words&);

template <Verb verb>
Result<Action> OnNode(Words& words) {
  Operate operate;
  operate.verb = verb;
  NOS_ASSIGN(operate.target, words.Require("a node name"));
  return Action(std::move(operate));
}

// Parses "annotate n1 key=value" and "label n1 key=value"; an empty value removes the key.
template <Verb verb>
Result<Action> SetOnNode(Words& words) {
  Operate operate;
  operate.verb = verb;
  NOS_ASSIGN(operate.target, words.Require("a node name"));
  NOS_ASSIGN(const std::string pair, words.Require("key=value"));
  const size_t equals = pair.find('=');
  if (equals == 0 || equals == std::string::npos) return words.Expected("key=value", pair);
  operate.key = pair.substr(0, equals);
  operate.value = pair.substr(equals + 1);
  return Action(std::move(operate));
}

Result<Action> ParseDelete(Words& words) {
  Operate operate;
  constexpr const char* kKinds =
      "'pod', 'node', 'quota', 'claim', 'claim-template', 'device-class' or 'device-taint'";
  NOS_ASSIGN(const std::string kind, words.Require(kKinds));
  if (const std::string of_claims = KindOfClaims(kind); !of_claims.empty()) {
    OnClaims gone{
        .verb = OnClaims::Verb::kDelete, .kind = of_claims, .name = {}, .spec = {}, .devices = {}};
    NOS_ASSIGN(gone.name, words.Require("its name"));
    return Action(std::move(gone));
  }
  if (kind != "pod" && kind != "node" && kind != "quota") return words.Expected(kKinds, kind);
  operate.verb = kind == "pod"    ? Verb::kDeletePod
                 : kind == "node" ? Verb::kDeleteNode
                                  : Verb::kDeleteQuota;
  NOS_ASSIGN(operate.target, words.Require("its name"));
  operate.force = kind == "pod" && words.TakeIf("force");
  return Action(std::move(operate));
}

Status TakeTime(Words& words, Duration& time) {
  NOS_ASSIGN(const std::string text, words.Require("a time such as 5m"));
  const auto parsed = ParseDuration(text);
  if (!parsed.ok() || *parsed <= Duration{}) {
    return words.Expected("a time such as 30s or 5m", text);
  }
  time = *parsed;
  return Status::Ok();
}

// Describes the accepted process names in errors.
constexpr const char* kProcesses = "'partitioner', 'scheduler', 'autoscaler' or 'agent NODE'";

// Parses "crash scheduler" or "crash agent n1 5m".
Result<Action> ParseCrash(Words& words) {
  Operate operate;
  operate.verb = Verb::kCrash;
  NOS_ASSIGN(operate.target, words.Require(kProcesses));
  if (operate.target == "agent") {
    NOS_ASSIGN(const std::string node, words.Require("a node name"));
    operate.target += " " + node;
  } else if (operate.target != "partitioner" && operate.target != "scheduler" &&
             operate.target != "autoscaler") {
    return words.Expected(kProcesses, operate.target);
  }
  if (!words.empty()) NOS_RETURN_IF_ERROR(TakeTime(words, operate.time));
  return Action(std::move(operate));
}

// Parses "fail pool a100 late".
Result<Action> ParseFailPool(Words& words) {
  Operate operate;
  operate.verb = Verb::kFailPool;
  NOS_ASSIGN(operate.target, words.Require("a pool name"));
  const std::string kinds = "one of " + PoolFaultNames();
  NOS_ASSIGN(const std::string what, words.Require(kinds));
  const auto fault = FindPoolFault(what);
  if (!fault) return words.Expected(kinds, what);
  operate.fault = *fault;
  return Action(std::move(operate));
}

// Parses "fail create n1 3".
Result<Action> ParseFail(Words& words) {
  Operate operate;
  constexpr const char* kKinds = "'create', 'destroy', 'reset' or 'pool'";
  NOS_ASSIGN(const std::string what, words.Require(kKinds));
  if (what == "pool") return ParseFailPool(words);
  if (what != "create" && what != "destroy" && what != "reset") return words.Expected(kKinds, what);
  operate.verb = what == "create"  ? Verb::kFailCreate
                 : what == "reset" ? Verb::kFailReset
                                   : Verb::kFailDestroy;
  NOS_ASSIGN(operate.target, words.Require("a node name"));
  NOS_ASSIGN(operate.count, words.RequireInt("how many operations fail"));
  return Action(std::move(operate));
}

// Parses "group train 3".
Result<Action> ParseGroup(Words& words) {
  Operate operate;
  operate.verb = Verb::kGroup;
  NOS_ASSIGN(operate.target, words.Require("the name of a group of pods"));
  NOS_ASSIGN(operate.count, words.RequireInt("how many of its pods are placed together"));
  return Action(std::move(operate));
}

// Takes key=value; otherwise an error that describes the key.
Status TakePair(Words& words, std::string_view what, std::string& key, std::string& value) {
  NOS_ASSIGN(const std::string pair, words.Require(what));
  const size_t equals = pair.find('=');
  if (equals == 0 || equals == std::string::npos) return words.Expected(what, pair);
  key = pair.substr(0, equals);
  value = pair.substr(equals + 1);
  return Status::Ok();
}

// Parses "budget guard app=web max=1 allowed=0".
Result<Action> ParseBudget(Words& words) {
  Operate operate;
  operate.verb = Verb::kBudget;
  NOS_ASSIGN(operate.target, words.Require("the name of a disruption budget"));
  NOS_RETURN_IF_ERROR(TakePair(words, "a label of pods, key=value", operate.key, operate.value));
  std::optional<int> allowed;
  while (!words.empty()) {
    std::string key, value;
    NOS_RETURN_IF_ERROR(TakePair(words, "max=N or allowed=N", key, value));
    const auto number = ParseInt(value);
    if (!number || *number < 0 || *number > 1000) return words.Expected("a number", value);
    if (key != "max" && key != "allowed") return words.Expected("max=N or allowed=N", key);
    if (key == "max") operate.count = static_cast<int>(*number);
    if (key == "allowed") allowed = static_cast<int>(*number);
  }
  operate.allowed = allowed.value_or(operate.count);
  return Action(std::move(operate));
}

// Parses "quota team-a min=cpu=4 max=cpu=8", or "quota team-a,team-b ...": one quota for both.
Result<Action> ParseQuota(Words& words) {
  Operate operate;
  operate.verb = Verb::kQuota;
  NOS_ASSIGN(operate.target, words.Require("a namespace"));
  while (!words.empty()) {
    const std::string kind(words.Peek().substr(0, 4));
    if (kind != "min=" && kind != "max=") {
      return words.Expected("min=RESOURCE=AMOUNT or max=RESOURCE=AMOUNT", words.Peek());
    }
    const std::string_view pair = words.Take().substr(4);
    const size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return words.Expected("RESOURCE=AMOUNT", pair);
    }
    auto& amounts = kind == "min=" ? operate.min : operate.max;
    amounts[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
  }
  return Action(std::move(operate));
}

Result<Action> ParsePlan(Words&) { return Action(PlanNow{}); }

Result<Action> ParseRun(Words& words) {
  RunFor run;
  NOS_RETURN_IF_ERROR(TakeTime(words, run.time));
  constexpr Duration kMaxRunTime = std::chrono::hours(1000);
  if (run.time > kMaxRunTime) return words.Fail("a run lasts at most 1000h");
  return Action(run);
}

Result<Action> ParseOnePod(Words& words) {
  NOS_ASSIGN(AddPods pods, ParsePods(words, 1));
  return Action(std::move(pods));
}

Result<Action> ParseManyPods(Words& words) {
  NOS_ASSIGN(const int count, words.RequireInt("how many pods"));
  if (count < 1 || count > 100'000) return words.Fail("1 to 100000 pods");
  NOS_ASSIGN(AddPods pods, ParsePods(words, count));
  return Action(std::move(pods));
}

const std::map<std::string_view, Parser>& Parsers() {
  static const std::map<std::string_view, Parser> parsers = {
      {"pod", ParseOnePod},
      {"pods", ParseManyPods},
      {"plan", ParsePlan},
      {"run", ParseRun},
      {"delete", ParseDelete},
      {"crash", ParseCrash},
      {"fail", ParseFail},
      {"group", ParseGroup},
      {"budget", ParseBudget},
      {"quota", ParseQuota},
      {"claim", ParseClaim},
      {"claim-template", ParseClaimTemplate},
      {"device-class", ParseDeviceClass},
      {"device-taint", ParseDeviceTaint},
      {"allocate", ParseAllocate},
      {"cordon", OnNode<Verb::kCordon>},
      {"uncordon", OnNode<Verb::kUncordon>},
      {"reboot", OnNode<Verb::kReboot>},
      {"annotate", SetOnNode<Verb::kAnnotate>},
      {"label", SetOnNode<Verb::kLabel>}};
  return parsers;
}

}  // namespace

Result<std::optional<Action>> ParseOperation(std::string_view keyword, Words& words) {
  const auto parser = Parsers().find(keyword);
  if (parser == Parsers().end()) return std::optional<Action>();
  NOS_ASSIGN(Action action, parser->second(words));
  NOS_RETURN_IF_ERROR(words.End());
  return std::optional<Action>(std::move(action));
}

std::string OperationKeywords() {
  std::string out;
  for (const auto& [keyword, parser] : Parsers()) out += fmt::format("{}, ", keyword);
  return out;
}

}  // namespace nos::sim
