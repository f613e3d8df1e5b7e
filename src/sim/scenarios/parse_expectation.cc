#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/scenarios/parse_steps.h"

namespace nos::sim {
namespace {

constexpr std::array<std::string_view, 8> kOutcomes = {
    "placed", "pending", "waiting", "starting", "running", "succeeded", "failed", "gone"};
constexpr std::array<std::string_view, 19> kCounts = {
    "placed",       "pending",       "bound",     "created",   "destroyed",
    "gpus-touched", "nodes-touched", "running",   "succeeded", "waiting",
    "failed",       "recreated",     "used",      "free",      "evictions",
    "placeholders", "leaving",       "preempted", "devices"};
constexpr std::array<std::string_view, 3> kPoolCounts = {"nodes", "coming", "wanted"};

template <size_t n>
bool Contains(const std::array<std::string_view, n>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

template <size_t n>
std::string Names(const std::array<std::string_view, n>& words) {
  return Join(std::vector<std::string>(words.begin(), words.end()), ", ");
}

std::vector<std::string> Alternatives(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view part : Split(text, '|')) out.emplace_back(part);
  return out;
}

// Parses "a placed on n1|n2" or "b pending because NoGpuForProfile".
Result<Action> ParsePodExpectation(std::string_view pod, Words& words) {
  ExpectPod expect;
  expect.pod = pod;
  NOS_ASSIGN(expect.outcome, words.Require(fmt::format("one of {}", Names(kOutcomes))));
  if (!Contains(kOutcomes, expect.outcome)) {
    return words.Expected(fmt::format("one of {}", Names(kOutcomes)), expect.outcome);
  }
  if (words.TakeIf("on")) {
    NOS_ASSIGN(const std::string nodes, words.Require("a node name"));
    expect.nodes = Alternatives(nodes);
  }
  if (words.TakeIf("because")) {
    NOS_ASSIGN(expect.code, words.Require("a reason"));
  }
  return Action(std::move(expect));
}

// Parses "placed 3" or "destroyed <= 2".
Result<Action> ParseCount(std::string_view what, Words& words) {
  ExpectCount expect{.what = std::string(what), .op = "=", .count = 0};
  for (const std::string_view op : {"=", "<=", ">="}) {
    if (words.TakeIf(op)) expect.op = op;
  }
  NOS_ASSIGN(expect.count, words.RequireInt("a number"));
  return Action(std::move(expect));
}

// Parses "a100 nodes 2".
Result<Action> ParsePoolCount(Words& words) {
  NOS_ASSIGN(const std::string pool, words.Require("a pool name"));
  const std::string known = fmt::format("one of {}", Names(kPoolCounts));
  NOS_ASSIGN(const std::string what, words.Require(known));
  if (!Contains(kPoolCounts, what)) return words.Expected(known, what);
  return ParseCount(fmt::format("pool {} {}", pool, what), words);
}

// Parses "2x1g.5gb free" or "3g.20gb@4 used".
Status ParseExpectedInstance(const Words& words, std::string_view text, ExpectedLayout& layout) {
  Words item(Trim(text), "");
  std::string_view placement = item.Take();
  int64_t count = 1;
  const size_t x = placement.find('x');
  if (const auto n = ParseInt(placement.substr(0, x)); x != std::string_view::npos && n) {
    count = *n;
    placement.remove_prefix(x + 1);
  }
  ExpectedInstance instance;
  const size_t at = std::min(placement.find('@'), placement.size());
  instance.profile = placement.substr(0, at);
  if (at < placement.size()) {
    const auto start = ParseInt(placement.substr(at + 1));
    if (!start) return words.Expected("PROFILE@START", placement);
    instance.start = static_cast<int>(*start);
  }
  instance.state = item.Take();
  const bool known = instance.state.empty() || instance.state == "used" ||
                     instance.state == "free" || instance.state == "new";
  if (instance.profile.empty() || !known || !item.empty() || count < 1 || count > 64) {
    return words.Expected("an instance such as 3g.20gb@4 used, or 2x1g.5gb free", text);
  }
  layout.insert(layout.end(), static_cast<size_t>(count), instance);
  return Status::Ok();
}

Result<ExpectedLayout> ParseExpectedLayout(const Words& words, std::string_view text) {
  ExpectedLayout layout;
  if (Trim(text) == "empty") return layout;
  for (const std::string_view item : Split(text, ',')) {
    NOS_RETURN_IF_ERROR(ParseExpectedInstance(words, item, layout));
  }
  return layout;
}

// Parses "n1/0: LAYOUT | LAYOUT".
Result<Action> ParseGpuExpectation(Words& words) {
  const std::string text = words.Rest();
  const size_t slash = text.find('/'), colon = text.find(':');
  if (slash == std::string::npos || colon == std::string::npos || slash > colon) {
    return words.Expected("gpu NODE/INDEX: INSTANCES", text);
  }
  ExpectGpu expect;
  expect.node = text.substr(0, slash);
  const std::string_view index = std::string_view(text).substr(slash + 1, colon - slash - 1);
  const auto gpu = ParseInt(index);
  if (!gpu || *gpu < 0 || *gpu > 63) return words.Expected("a GPU index", index);
  expect.gpu = static_cast<int>(*gpu);
  for (const std::string& layout : Alternatives(std::string_view(text).substr(colon + 1))) {
    NOS_ASSIGN(expect.alternatives.emplace_back(), ParseExpectedLayout(words, layout));
  }
  return Action(std::move(expect));
}

// Parses "annotation n1 nos.nebuly.com/status-gpu-0-10gb-free=2".
Result<Action> ParseAnnotationExpectation(Words& words) {
  ExpectAnnotation expect;
  NOS_ASSIGN(expect.node, words.Require("a node name"));
  NOS_ASSIGN(const std::string pair, words.Require("key=value"));
  const size_t equals = pair.find('=');
  if (equals == 0 || equals == std::string::npos) return words.Expected("key=value", pair);
  expect.key = pair.substr(0, equals);
  expect.value = pair.substr(equals + 1);
  return Action(std::move(expect));
}

Result<Action> ParseOne(Words& words) {
  NOS_ASSIGN(const std::string first,
             words.Require("a pod name, a count, gpu, pool, claim, annotation or unchanged"));
  if (first == "pool") return ParsePoolCount(words);
  // A pod may have this name, too.
  if (first == "claim" && !Contains(kOutcomes, words.Peek())) return ParseClaimExpectation(words);
  if (first == "gpu") return ParseGpuExpectation(words);
  if (first == "annotation") return ParseAnnotationExpectation(words);
  if (first == "unchanged") {
    const bool any_node = words.Peek() == "and";
    return Action(ExpectUnchanged{any_node ? std::string() : std::string(words.Take())});
  }
  const std::string_view next = words.Peek();
  const bool number = next == "=" || next == "<=" || next == ">=" || ParseInt(next);
  if (!number) return ParsePodExpectation(first, words);
  if (Contains(kCounts, first)) return ParseCount(first, words);
  return words.Expected(fmt::format("one of {}", Names(kCounts)), first);
}

}  // namespace

Result<std::vector<Action>> ParseExpectation(Words& words) {
  std::vector<Action> actions;
  NOS_ASSIGN(actions.emplace_back(), ParseOne(words));
  while (words.TakeIf("and")) {
    NOS_ASSIGN(actions.emplace_back(), ParseOne(words));
  }
  NOS_RETURN_IF_ERROR(words.End());
  return actions;
}

}  // namespace nos::sim
