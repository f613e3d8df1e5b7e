// Formats an explanation as text and as JSON.
#include <fmt/core.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/table.h"
#include "base/text.h"
#include "scheduling/explain.h"
#include "scheduling/summary.h"

namespace nos::scheduling {
namespace {

using Repartition = Explanation::Repartition;
using Instance = Explanation::Instance;
using Lack = Explanation::Lack;
using Victims = Explanation::Victims;

constexpr size_t kLabel = 14;     // columns of the label
constexpr size_t kMaxLines = 12;  // limit on listed pods

Quantity QuantityOf(const std::string& resource, int64_t amount) {
  return resource == "cpu" ? Quantity::FromMilli(amount) : Quantity::FromValue(amount);
}

// Appends a label and a text, wrapped at spaces.
void AddLines(std::string& out, const std::string& label, const std::string& text, size_t width) {
  std::string line = fmt::format("{:<{}}", label, kLabel);
  size_t used = kLabel;
  bool first = true;
  for (const std::string_view word : Split(text, ' ')) {
    const size_t length = DisplayWidth(word);
    if (!first && used + 1 + length > width) {
      out += line + "\n";
      line = std::string(kLabel, ' ');
      used = kLabel;
      first = true;
    }
    line += (first ? "" : " ") + std::string(word);
    used += length + (first ? 0 : 1);
    first = false;
  }
  out += line + "\n";
}

std::string LackText(const Lack& lack) {
  const auto amount = [&](int64_t value) {
    return QuantityOf(lack.resource, value).ToBinaryString();
  };
  return fmt::format("{}: asks for {}, {} of {} free{}", lack.resource, amount(lack.asked),
                     amount(std::max<int64_t>(lack.free, 0)), amount(lack.allocatable),
                     lack.never ? "; more than the node ever has" : "");
}

std::string RepartitionText(const Repartition& repartition) {
  std::string text = InstancesText(repartition.made);
  if (!repartition.destroyed.empty()) {
    text += "; free instances to destroy: " + InstancesText(repartition.destroyed);
  }
  return text;
}

std::string VictimsText(const Victims& victims) {
  std::vector<std::string> pods = victims.pods;
  if (pods.size() > kMaxLines) {
    const size_t more = pods.size() - kMaxLines;
    pods.resize(kMaxLines);
    pods.push_back(fmt::format("{} more", more));
  }
  return fmt::format("on node {} (priority up to {}): {}", victims.node, victims.priority,
                     Join(pods, ", "));
}

Json InstancesJson(const std::vector<Instance>& instances) {
  JsonArray out;
  for (const Instance& one : instances) {
    out.push_back(JsonObject{{"gpu", one.gpu}, {"instance", one.name}});
  }
  return out;
}

Json RepartitionJson(const Repartition& repartition) {
  return JsonObject{{"made", InstancesJson(repartition.made)},
                    {"destroyed", InstancesJson(repartition.destroyed)}};
}

// A node with the instances created on it. The key "cut" is removed in the next minor version.
Json PlaceJson(const Explanation::Place& place) {
  return JsonObject{{"node", place.node},
                    {"repartition", RepartitionJson(place.repartition)},
                    {"cut", RepartitionJson(place.repartition)}};
}

Json VictimsJson(const Victims& victims) {
  JsonArray pods;
  for (const std::string& pod : victims.pods) pods.push_back(Json(pod));
  return JsonObject{
      {"node", victims.node}, {"pods", std::move(pods)}, {"priority", victims.priority}};
}

Json NearestJson(const Explanation::Nearest& nearest) {
  JsonArray objections, lacks;
  for (const Reason& reason : nearest.objections) {
    objections.push_back(JsonObject{{"code", reason.code}, {"message", reason.message}});
  }
  for (const Lack& lack : nearest.lacks) {
    const auto amount = [&](int64_t value) { return QuantityOf(lack.resource, value).ToString(); };
    lacks.push_back(JsonObject{{"resource", lack.resource},
                               {"asked", amount(lack.asked)},
                               {"free", amount(lack.free)},
                               {"allocatable", amount(lack.allocatable)},
                               {"never", lack.never}});
  }
  JsonObject out{
      {"node", nearest.node}, {"objections", std::move(objections)}, {"lacks", std::move(lacks)}};
  if (nearest.repartition) {
    out["repartition"] = RepartitionJson(*nearest.repartition);
    out["cut"] = RepartitionJson(*nearest.repartition);  // removed in the next minor version
  }
  return out;
}

}  // namespace

std::string InstancesText(const std::vector<Instance>& instances) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < instances.size(); ++i) {
    const bool last = i + 1 == instances.size() || instances[i + 1].gpu != instances[i].gpu;
    parts.push_back(instances[i].name);
    if (last) parts.back() += fmt::format(" of GPU {}", instances[i].gpu);
  }
  return Join(parts, ", ");
}

std::string ToText(const Explanation& why, size_t width) {
  const PodSummary summary = Summarize(FactsOf(why));
  std::string out = summary.headline + "\n";
  const auto add = [&](const std::string& label, const std::string& text) {
    AddLines(out, label, text, width);
  };
  if (!why.requirements.empty()) add("requirements", why.requirements);
  if (!why.gang.empty()) add("group", why.gang);
  if (!why.quota.empty()) add("quota", why.quota);
  if (why.impossible) add("all nodes", why.impossible->message);
  if (why.place) {
    const Repartition& repartition = why.place->repartition;
    if (!repartition.made.empty()) add("to create", RepartitionText(repartition));
  } else if (why.being_partitioned) {
    add("creating", InstancesText(why.being_partitioned->repartition.made));
  } else {
    for (const Diagnosis::Entry& entry : why.diagnosis.entries) {
      add(why.diagnosis.asked ? fmt::format("{} of {}", entry.nodes, why.diagnosis.nodes)
                              : "all nodes",
          entry.message);
    }
  }
  if (why.nearest) {
    add("nearest", "node " + why.nearest->node);
    for (const Lack& lack : why.nearest->lacks) add("  lacks", LackText(lack));
    for (const Reason& reason : why.nearest->objections) add("  objects", reason.message);
    if (why.nearest->repartition) add("  to create", RepartitionText(*why.nearest->repartition));
  }
  if (why.in_use) {
    add("in use", fmt::format("on node {} by no known pod: {}", why.in_use->node,
                              InstancesText(why.in_use->instances)));
  }
  if (why.awaited) add("ending", VictimsText(*why.awaited));
  if (why.preemption) add("evicted", VictimsText(*why.preemption));
  if (why.in_the_way && !why.preemption) add("in the way", VictimsText(*why.in_the_way));
  if (why.in_the_way && !why.preemption) {
    add("priority", why.no_preemption.empty()
                        ? fmt::format("{}: no pod is evicted for it", why.priority)
                        : why.no_preemption);
  }
  add("remedy", why.remedy);
  for (const std::string& other : why.other_remedies) add("or", other);
  add("starts", summary.eta_reason);
  return out;
}

Json ToJson(const Explanation& why) {
  JsonArray reasons;
  const auto add = [&](std::string_view code, const std::string& message, int nodes) {
    if (message.empty()) return;
    reasons.push_back(JsonObject{{"code", code}, {"message", message}, {"nodes", nodes}});
  };
  add(why.gate_code, why.gate, 0);
  add(why.beside ? codes::kGangNotWhole : codes::kGangIncomplete, why.gang, 0);
  add(codes::kQuota, why.quota, 0);
  if (why.impossible) add(why.impossible->code, why.impossible->message, 0);
  for (const Diagnosis::Entry& entry : why.diagnosis.entries) {
    add(entry.code, entry.message, entry.nodes);
  }
  JsonObject out{{"pod", why.pod},
                 {"priority", why.priority},
                 {"nodes", why.diagnosis.nodes},
                 {"available", why.diagnosis.feasible},
                 {"reasons", std::move(reasons)}};
  if (!why.requirements.empty()) out["requirements"] = why.requirements;
  if (!why.gate.empty()) out["gate"] = why.gate;
  if (!why.gang.empty()) out["gang"] = why.gang;
  if (!why.quota.empty()) out["quota"] = why.quota;
  if (why.place) out["place"] = PlaceJson(*why.place);
  if (why.being_partitioned) {
    out["beingPartitioned"] = PlaceJson(*why.being_partitioned);
    out["beingCut"] = PlaceJson(*why.being_partitioned);  // removed in the next minor version
  }
  if (why.in_use) {
    out["inUse"] =
        JsonObject{{"node", why.in_use->node}, {"instances", InstancesJson(why.in_use->instances)}};
  }
  if (why.nearest) out["nearest"] = NearestJson(*why.nearest);
  if (why.awaited) out["awaited"] = VictimsJson(*why.awaited);
  if (why.preemption) out["preemption"] = VictimsJson(*why.preemption);
  if (!why.awaits_agent.empty()) out["awaitsAgent"] = why.awaits_agent;
  if (!why.no_preemption.empty()) out["mayNotPreempt"] = why.no_preemption;
  if (why.in_the_way) out["inTheWay"] = VictimsJson(*why.in_the_way);
  out["remedy"] = why.remedy;
  out["remedyCode"] = why.remedy_code;
  for (auto& [key, value] : ToJson(Summarize(FactsOf(why)))) out[key] = value;
  return out;
}

}  // namespace nos::scheduling
