#include "sim/scenarios/parse_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"

namespace nos::sim {
namespace {

// Setters for "key=value" settings by key; a setting without '=' has an empty value.
using Settings = std::map<std::string, std::function<Status(std::string_view value)>, std::less<>>;

std::string Names(const Settings& settings) {
  std::string out;
  for (const auto& [name, setter] : settings) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Status Apply(const Words& words, const Settings& settings, std::string_view word) {
  const size_t equals = std::min(word.find('='), word.size());
  const auto found = settings.find(word.substr(0, equals));
  if (found == settings.end()) {
    return words.Expected(fmt::format("one of {}", Names(settings)), word);
  }
  return found->second(word.substr(std::min(equals + 1, word.size())));
}

auto SetQuantity(const Words& words, Quantity& target) {
  return [&words, &target](std::string_view value) -> Status {
    const auto parsed = Quantity::Parse(value);
    if (!parsed.ok()) return words.Expected("a quantity such as 4, 500m or 16Gi", value);
    target = *parsed;
    return Status::Ok();
  };
}

auto SetInt(const Words& words, int& target) {
  return [&words, &target](std::string_view value) -> Status {
    const auto parsed = ParseInt(value);
    if (!parsed || *parsed < -1'000'000'000 || *parsed > 1'000'000'000) {
      return words.Expected("a whole number", value);
    }
    target = static_cast<int>(*parsed);
    return Status::Ok();
  };
}

auto SetDuration(const Words& words, Duration& target) {
  return [&words, &target](std::string_view value) -> Status {
    const auto parsed = ParseDuration(value);
    if (!parsed.ok() || *parsed < Duration{}) {
      return words.Expected("a time such as 30s, 5m or 1h30m", value);
    }
    target = *parsed;
    return Status::Ok();
  };
}

auto SetResets(const Words& words, agent::ResetRule& target) {
  return [&words, &target](std::string_view value) -> Status {
    const auto rule = agent::ParseResetRule(value);
    if (!rule) return words.Expected("'never', 'gpu' or 'node'", value);
    target = *rule;
    return Status::Ok();
  };
}

auto SetFlag(const Words& words, bool& target, bool to) {
  return [&words, &target, to](std::string_view value) -> Status {
    if (!value.empty()) return words.Expected("no value here", value);
    target = to;
    return Status::Ok();
  };
}

auto SetEnds(const Words& words, std::string& target) {
  return [&words, &target](std::string_view value) -> Status {
    if (value != "late" && value != "never") return words.Expected("'late' or 'never'", value);
    target = value;
    return Status::Ok();
  };
}

// Parses "a=b,c=d".
auto SetMap(const Words& words, cluster::StringMap& target) {
  return [&words, &target](std::string_view value) -> Status {
    for (const std::string_view pair : Split(value, ',')) {
      const size_t equals = pair.find('=');
      if (equals == 0 || equals == std::string_view::npos) return words.Expected("key=value", pair);
      target[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    }
    return Status::Ok();
  };
}

// Parses "key[=value][:Effect]".
cluster::Taint ParseTaint(std::string_view text) {
  cluster::Taint taint;
  const size_t colon = std::min(text.find(':'), text.size());
  taint.effect = text.substr(std::min(colon + 1, text.size()));
  text = text.substr(0, colon);
  const size_t equals = std::min(text.find('='), text.size());
  taint.key = text.substr(0, equals);
  taint.value = text.substr(std::min(equals + 1, text.size()));
  return taint;
}

auto SetTaints(const Words& words, std::vector<cluster::Taint>& target) {
  return [&words, &target](std::string_view value) -> Status {
    for (const std::string_view text : Split(value, ',')) {
      target.push_back(ParseTaint(text));
      const std::string& effect = target.back().effect;
      if (effect != "NoSchedule" && effect != "NoExecute" && effect != "PreferNoSchedule") {
        return words.Expected("a taint such as dedicated=ml:NoSchedule", text);
      }
    }
    return Status::Ok();
  };
}

auto SetTolerations(std::vector<cluster::Toleration>& target) {
  return [&target](std::string_view value) -> Status {
    for (const std::string_view text : Split(value, ',')) {
      const cluster::Taint taint = ParseTaint(text);
      const bool any_value = text.find('=') == std::string_view::npos;
      target.push_back({taint.key, any_value ? "Exists" : "Equal", taint.value, taint.effect});
    }
    return Status::Ok();
  };
}

// Parses "zone:app=db,rack:app=cache".
auto SetOthers(const Words& words, std::vector<OthersSpec>& target) {
  return [&words, &target](std::string_view value) -> Status {
    for (const std::string_view text : Split(value, ',')) {
      const size_t colon = text.find(':'), equals = text.find('=', colon);
      if (colon == std::string_view::npos || equals == std::string_view::npos) {
        return words.Expected("KEY:LABEL=VALUE such as zone:app=db", text);
      }
      target.push_back({std::string(text.substr(0, colon)),
                        std::string(text.substr(colon + 1, equals - colon - 1)),
                        std::string(text.substr(equals + 1))});
    }
    return Status::Ok();
  };
}

// Parses "3g.20gb@4 used by a" or "1g.5gb@0 free".
Result<InstanceSpec> ParseInstance(const Words& words, std::string_view text) {
  Words item(Trim(text), "");
  InstanceSpec instance;
  instance.placement = item.Take();
  if (instance.placement.find('@') == std::string::npos) {
    return words.Expected("PROFILE@START such as 3g.20gb@4", text);
  }
  instance.used = item.TakeIf("used");
  if (!instance.used && !item.TakeIf("free")) return words.Expected("'used' or 'free'", text);
  if (instance.used && item.TakeIf("by")) instance.pod = item.Take();
  if (!item.empty()) return words.Expected("',' or the end after an instance", item.Peek());
  return instance;
}

// Parses a request: "1g.5gb", "2x1g.5gb", or '+', which starts the next container.
Status ParseRequest(const Words& words, std::string_view word, PodSpec& pod) {
  const std::string_view written = word;
  if (word == "+") {
    pod.containers.emplace_back();
    return Status::Ok();
  }
  int64_t count = 1;
  const size_t x = word.find('x');
  if (const auto n = ParseInt(word.substr(0, x)); x != std::string_view::npos && n) {
    count = *n;
    word.remove_prefix(x + 1);
  }
  if (count < 1 || count > 1000 || word.empty()) {
    return words.Expected("a request such as 1g.5gb or 2x1g.5gb", written);
  }
  pod.containers.back()[std::string(word)] += static_cast<int>(count);
  return Status::Ok();
}

Settings PodSettings(const Words& words, PodSpec& pod, Duration& run, Duration& waiting) {
  return {{"priority", SetInt(words, pod.priority)},
          {"cpu", SetQuantity(words, pod.cpu)},
          {"memory", SetQuantity(words, pod.memory)},
          {"run", SetDuration(words, run)},
          {"grace", SetDuration(words, pod.grace)},
          {"ends", SetEnds(words, pod.ends)},
          {"at", SetDuration(words, pod.arrival)},
          {"waiting", SetDuration(words, waiting)},
          {"labels", SetMap(words, pod.labels)},
          {"group",
           [&pod](std::string_view value) {
             pod.labels[std::string(kPodGroupLabel)] = value;
             return Status::Ok();
           }},
          {"select", SetMap(words, pod.node_selector)},
          {"tolerate", SetTolerations(pod.tolerations)},
          {"annotations", SetMap(words, pod.annotations)},
          {"near", SetOthers(words, pod.near)},
          {"apart", SetOthers(words, pod.apart)},
          {"owner",
           [&pod](std::string_view value) {
             pod.owner = value;
             return Status::Ok();
           }},
          {"claim",
           [&pod](std::string_view value) {
             for (const std::string_view claim : Split(value, ',')) {
               pod.claims.push_back({std::string(claim), ""});
             }
             return Status::Ok();
           }},
          {"template",
           [&pod](std::string_view value) {
             for (const std::string_view name : Split(value, ',')) {
               pod.claims.push_back({"", std::string(name)});
             }
             return Status::Ok();
           }},
          {"ns",
           [&pod](std::string_view value) {
             pod.ns = value;
             return Status::Ok();
           }},
          {"node", [&pod](std::string_view value) {
             pod.node = value;
             return Status::Ok();
           }}};
}

Status ParseGpuRange(Words& words, const NodeSpec& node, std::string_view text, size_t& first,
                     size_t& last) {
  const size_t dash = std::min(text.find('-'), text.size());
  const auto from = ParseInt(text.substr(0, dash));
  const auto to = dash < text.size() ? ParseInt(text.substr(dash + 1)) : from;
  const auto count = static_cast<int64_t>(node.gpus.size());
  if (!from || !to || *from < 0 || *from > *to || *to >= count) {
    return words.Expected(fmt::format("a GPU of '{}' (0 to {})", node.name, count - 1), text);
  }
  first = static_cast<size_t>(*from);
  last = static_cast<size_t>(*to);
  return Status::Ok();
}

// The settings of a node statement. The node has `gpus` GPUs of `model`.
Settings NodeSettings(const Words& words, NodeSpec& node, int& gpus, std::string& model) {
  return {{"gpus", SetInt(words, gpus)},
          {"cpu", SetQuantity(words, node.cpu)},
          {"memory", SetQuantity(words, node.memory)},
          {"pods", SetInt(words, node.max_pods)},
          {"labels", SetMap(words, node.labels)},
          {"annotations", SetMap(words, node.annotations)},
          {"taints", SetTaints(words, node.taints)},
          {"cordoned", SetFlag(words, node.unschedulable, true)},
          {"unmanaged", SetFlag(words, node.managed, false)},
          {"mps", SetFlag(words, node.mps, true)},
          {"clients", SetInt(words, node.max_shares)},
          {"hybrid", SetFlag(words, node.hybrid, true)},
          {"dra",
           [&words, &node](std::string_view value) {
             node.managed = false;
             return SetFlag(words, node.dra, true)(value);
           }},
          {"reset", SetResets(words, node.resets)},
          {"model", [&model](std::string_view value) {
             model = value;
             return Status::Ok();
           }}};
}

Status SetGpus(const Words& words, int gpus, const std::string& model, NodeSpec& node) {
  if (gpus < 0 || gpus > 64) return words.Fail("a node has 0 to 64 GPUs");
  if (node.max_shares < 1 || node.max_shares > gpu::kMaxClients) {
    return words.Fail(fmt::format("a GPU has 1 to {} MPS clients", gpu::kMaxClients));
  }
  node.gpus.assign(static_cast<size_t>(gpus), GpuSpec{.model = model, .instances = {}});
  return Status::Ok();
}

}  // namespace

Result<NodeSpec> ParseNode(Words& words) {
  NodeSpec node;
  NOS_ASSIGN(node.name, words.Require("a node name"));
  std::string model = "A100-40GB";
  int gpus = 1;
  const Settings settings = NodeSettings(words, node, gpus, model);
  while (!words.empty()) NOS_RETURN_IF_ERROR(Apply(words, settings, words.Take()));
  NOS_RETURN_IF_ERROR(SetGpus(words, gpus, model, node));
  return node;
}

Result<PoolSpec> ParsePool(Words& words) {
  PoolSpec pool;
  NOS_ASSIGN(pool.name, words.Require("a pool name"));
  std::string model = "A100-40GB";
  int gpus = 1;
  pool.nodes = -1;
  Settings settings = NodeSettings(words, pool.node, gpus, model);
  settings["min"] = SetInt(words, pool.min);
  settings["max"] = SetInt(words, pool.max);
  settings["nodes"] = SetInt(words, pool.nodes);
  settings["price"] = SetQuantity(words, pool.price);
  settings["start"] = SetDuration(words, pool.start);
  settings["machines"] = SetFlag(words, pool.machines, true);
  settings["unnamed"] = SetFlag(words, pool.unnamed, true);
  settings["untold"] = SetFlag(words, pool.undescribed, true);
  while (!words.empty()) NOS_RETURN_IF_ERROR(Apply(words, settings, words.Take()));
  NOS_RETURN_IF_ERROR(SetGpus(words, gpus, model, pool.node));
  if (pool.nodes < 0) pool.nodes = pool.min;
  if (pool.min < 0 || pool.max < std::max(1, pool.min) || pool.max > cluster::kMaxPoolNodes) {
    return words.Fail(
        fmt::format("a pool has min 0 to max, and max 1 to {}", cluster::kMaxPoolNodes));
  }
  if (pool.nodes > pool.max) return words.Fail("a pool begins with no more nodes than max");
  return pool;
}

Status ParseAutoscaler(Words& words, controllers::AutoscalerConfig& config) {
  const Settings settings = {{"moves", SetFlag(words, config.moves, true)},
                             {"noshrink", SetFlag(words, config.shrink, false)},
                             {"settle", SetDuration(words, config.settle)},
                             {"shrink-after", SetDuration(words, config.shrink_after)},
                             {"close-for", SetDuration(words, config.backoff)},
                             {"move-after", SetDuration(words, config.move_after)},
                             {"max-moves", SetInt(words, config.max_moves_per_pod)},
                             {"hold", SetDuration(words, config.relocations.hold_timeout)},
                             {"drain", SetDuration(words, config.relocations.drain_timeout)}};
  while (!words.empty()) NOS_RETURN_IF_ERROR(Apply(words, settings, words.Take()));
  return Status::Ok();
}

Status ParseGpu(Words& words, NodeSpec& node, std::set<size_t>& described) {
  const std::string text = words.Rest();
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return words.Expected("gpu INDEX: INSTANCES", text);
  Words head(std::string_view(text).substr(0, colon), "");
  size_t first = 0, last = 0;
  NOS_RETURN_IF_ERROR(ParseGpuRange(words, node, head.Take(), first, last));
  std::string model = node.gpus[first].model;
  const Settings settings = {{"model", [&model](std::string_view value) {
                                model = value;
                                return Status::Ok();
                              }}};
  while (!head.empty()) NOS_RETURN_IF_ERROR(Apply(words, settings, head.Take()));
  std::vector<InstanceSpec> instances;
  const std::string_view layout = Trim(std::string_view(text).substr(colon + 1));
  if (layout != "empty") {
    for (const std::string_view item : Split(layout, ',')) {
      NOS_ASSIGN(instances.emplace_back(), ParseInstance(words, item));
    }
  }
  for (size_t i = first; i <= last; ++i) {
    if (!described.insert(i).second) {
      return words.Fail(fmt::format("GPU {} of '{}' is described already", i, node.name));
    }
    node.gpus[i] = {model, instances};
  }
  return Status::Ok();
}

Result<AddPods> ParsePods(Words& words, int count) {
  AddPods add;
  PodSpec pod;
  NOS_ASSIGN(pod.name, words.Require("a pod name"));
  pod.containers.emplace_back();
  Duration run{-1};
  const Settings settings = PodSettings(words, pod, run, add.waiting);
  while (!words.empty()) {
    const std::string_view word = words.Take();
    const bool setting = word.find('=') != std::string_view::npos;
    NOS_RETURN_IF_ERROR(setting ? Apply(words, settings, word) : ParseRequest(words, word, pod));
  }
  if (run >= Duration{}) pod.run = run;
  for (int i = 1; i <= count; ++i) {
    add.pods.push_back(pod);
    if (count > 1) add.pods.back().name = fmt::format("{}-{}", pod.name, i);
  }
  return add;
}

}  // namespace nos::sim
