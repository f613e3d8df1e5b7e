#include "scheduling/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cluster/context.h"
#include "scheduling/explain.h"
#include "scheduling/pod_names.h"

namespace nos::scheduling {
namespace {

constexpr size_t kMaxListed = 12;  // pods in the way
constexpr std::string_view kPending = "pending";

// When a pod with a remedy of this kind starts.
enum class Start {
  kSoon,     // without help
  kOthers,   // when others act or end; a telemetry server may estimate that
  kUnknown,  // nobody can know
  kNever,    // not as pod and cluster are
};

struct Kind {
  std::string_view code;
  std::string_view begins, has;  // the first words of its texts, and words that follow
  std::string_view headline;     // {0}: the pod, {1}: its demand
  std::string_view brings;
  Start start = Start::kNever;
};

// The first kind that fits counts.
constexpr std::array kKinds = {
    Kind{remedies::kNoneNeeded, "none needed: ", "", "{0} starts without help", "", Start::kSoon},
    Kind{remedies::kLiftGate, "wait until the component that set its scheduling gates", "",
         "{0} is held by its scheduling gates", "a scheduler then looks for a node",
         Start::kUnknown},
    Kind{remedies::kLiftGate, "resolve what keeps it from the queue", "", "{0} is not queued yet",
         "a scheduler then looks for a node", Start::kUnknown},
    Kind{remedies::kCompleteGang, "complete its group", "", "{0} waits for other pods of its group",
         "the group can then be placed together", Start::kUnknown},
    Kind{remedies::kRaisePlanTimeout, "raise planTimeoutSeconds", "",
         "{0} waits, although a node has room: the search for a plan ended before",
         "the partitioner then has the time to find the room", Start::kUnknown},
    Kind{remedies::kRaiseQuota, "raise ", "", "{0} waits for its quota", "its quota then admits it",
         Start::kOthers},
    Kind{remedies::kWaitForPods, "wait for the end of ", "",
         "{0} waits for {1} that other pods hold", "it then fits there", Start::kOthers},
    Kind{remedies::kWaitForReservation, "wait until ", "is served",
         "{0} waits behind a pod that has waited longer", "its turn comes then", Start::kOthers},
    Kind{remedies::kFreeResources, "free ", "", "{0} waits for {1} that is in use",
         "it then fits there", Start::kOthers},
    Kind{remedies::kPartitionGpus, "create ", " on node ", "{0} waits until {1} is created for it",
         "it starts there, usually within seconds", Start::kSoon},
    Kind{remedies::kUseDeployment, "run it as a Deployment", "",
         "{0} waits for {1}, which is not created for pods of a DaemonSet",
         "its slices are then created"},
    Kind{remedies::kOptInNode, "opt node ", "",
         "{0} waits: nos does not share the GPUs that could serve it",
         "its slices are then created there"},
    Kind{remedies::kInspectResourceClaims, "inspect its resource claims", "",
         "{0} waits for its resource claims", "a node has room for the rest", Start::kUnknown},
    Kind{remedies::kInspectAgent, "inspect the agent", "", "{0} waits for the agent of a node",
         "the node's GPUs can then be partitioned", Start::kUnknown},
    Kind{remedies::kAddNode, "add a node", "", "no node can hold {0}, which asks for {1}",
         "it then fits on the new node"},
    Kind{remedies::kSplitPod, "split the pod", "", "{0} asks for more than a node can hold: {1}",
         "the parts can then have nodes of their own"},
    Kind{remedies::kRequestLess, "request less", "", "{0} asks for more than a node can have",
         "a node can then hold it"},
    Kind{remedies::kRequestLess, "require less", "", "{0} asks for more than a node can have",
         "a slice then meets its requirements"},
    Kind{remedies::kRequestOneShare, "request one nvidia.com/", "",
         "{0} asks for several shares in a container", "a GPU can then serve it"},
    Kind{remedies::kRequestOneShare, "request each share", "",
         "{0} asks for several shares in a container", "a GPU can then serve it"},
    Kind{remedies::kRequestAdvertisedName, "request ", "offers it by that name",
         "{0} asks for {1} under a name that no node offers", "it is then served"},
    Kind{remedies::kRequestExistingProfile, "request ", "",
         "{0} asks for {1}, which no GPU here offers", "a GPU can then be partitioned for it"},
    Kind{remedies::kAllowInCatalogue, "allow a geometry", "",
         "{0} asks for {1}, which the catalogue does not allow", "it can then be created"},
    Kind{remedies::kConfigureParts, "name ", "hybrid.migParts",
         "{0} asks for {1}, which no agent is configured to offer", "an agent then offers it"},
    Kind{remedies::kLiftConstraints, "", "", "no node accepts {0} as it is",
         "it is then no longer excluded there"},
};
constexpr Kind kNoRemedy{"", "", "", "{0} waits for {1}", "", Start::kOthers};

// "for ml/b: ", in front of the remedy of another member of its gang.
std::string_view WhoseOf(std::string_view remedy) {
  if (!remedy.starts_with("for ")) return {};
  const size_t end = remedy.find(": ");
  if (end == std::string_view::npos) return {};
  const std::string_view name = remedy.substr(4, end - 4);
  const bool is_pod = name.find('/') != std::string_view::npos && name.find(' ') == name.npos;
  return is_pod ? remedy.substr(0, end + 2) : std::string_view();
}

const Kind& KindOfRemedy(std::string_view remedy) {
  if (remedy.empty()) return kNoRemedy;
  remedy.remove_prefix(WhoseOf(remedy).size());
  return *std::ranges::find_if(kKinds, [&](const Kind& kind) {
    return remedy.starts_with(kind.begins) && remedy.find(kind.has) != std::string_view::npos;
  });
}

std::string_view Between(std::string_view text, std::string_view from,
                         std::initializer_list<std::string_view> ends) {
  const size_t begin = text.find(from);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + from.size());
  size_t end = text.size();
  for (const std::string_view one : ends) end = std::min(end, text.find(one));
  return text.substr(0, end);
}

std::vector<std::string> InTheWay(const Kind& kind, std::string_view remedy) {
  std::vector<std::string> found;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) found.emplace_back(text);
  };
  remedy.remove_prefix(WhoseOf(remedy).size());
  if (kind.code == remedies::kWaitForPods) {
    add(Between(remedy, kind.begins, {", where ", ", which ", ", or give ", ", whose "}));
  } else if (kind.code == remedies::kLiftGate) {
    for (const std::string_view gate : Split(Between(remedy, ": ", {}), ',')) add(Trim(gate));
  } else if (kind.code == remedies::kCompleteGang) {
    add(Between(remedy, ": ", {}));
  } else if (kind.code == remedies::kRaiseQuota) {
    add(Between(remedy, " in ", {" to ", " by ", ", or "}));
  } else if (kind.code == remedies::kWaitForReservation) {
    add(Between(remedy, kind.begins, {" is served"}));
  }
  return found;
}

// The alternatives in a text.
std::vector<PodSummary::Action> ActionsOf(std::string_view remedy) {
  const Kind& kind = KindOfRemedy(remedy);
  if (remedy.empty() || kind.code == remedies::kNoneNeeded) return {};
  const std::string_view whose = WhoseOf(remedy);
  std::string_view text = remedy.substr(whose.size());
  std::string brings(kind.brings);
  const auto cut = [&](std::string_view mark) {
    const size_t at = text.find(mark);
    if (at == std::string_view::npos) return std::string_view();
    const std::string_view rest = text.substr(at + mark.size());
    text = text.substr(0, at);
    return rest;
  };
  if (kind.code == remedies::kRaiseQuota) {
    const std::string_view after = cut("; ");
    if (!after.empty()) brings = fmt::format("{}; {}", brings, after);
  } else if (kind.code == remedies::kLiftConstraints) {
    for (const std::string_view room : {"it has room", "its priority makes room there"}) {
      if (!text.ends_with(fmt::format(": {}", room))) continue;
      text.remove_suffix(room.size() + 2);
      brings = room;
    }
  }
  const bool several =
      kind.code == remedies::kWaitForPods || kind.code == remedies::kRaiseQuota ||
      (kind.code == remedies::kLiftConstraints && text.find(", and ") == std::string_view::npos);
  const std::string_view other = several ? cut(", or ") : std::string_view();
  std::vector<PodSummary::Action> actions = {{fmt::format("{}{}", whose, text), brings}};
  if (!other.empty()) {
    const bool priority = other.starts_with("give it a priority");
    const bool wait = other.starts_with("wait until");
    actions.push_back({fmt::format("{}{}", whose, other), priority ? "it then evicts them"
                                                          : wait   ? std::string(kind.brings)
                                                                   : brings});
  }
  return actions;
}

std::string_view ReasonOf(Start start, std::string_view code) {
  switch (start) {
    case Start::kSoon:
      return "usually within seconds";
    case Start::kOthers:
      return "not known: it depends on when others end";
    case Start::kUnknown:
      return code == remedies::kLiftGate ? "not known: it depends on when its gates are removed"
                                         : "not known: something outside nos must act first";
    case Start::kNever:
      return "none: it cannot start before the pod or the cluster is changed";
  }
  return "";
}

std::string PendingHeadline(const PodFacts& facts, const Kind& kind) {
  if (!facts.progress.empty()) return facts.progress;
  if (!WhoseOf(facts.remedy).empty()) {  // another member of its gang is what lacks something
    return facts.pod + " waits for other pods of its group";
  }
  const std::string demand = facts.demand.empty() ? "a node" : facts.demand;
  if (facts.partitioning && facts.remedy.empty()) {
    return fmt::format("{} waits until {} is created for it", facts.pod, demand);
  }
  return fmt::format(fmt::runtime(kind.headline), facts.pod, demand);
}

void SummarizePending(const PodFacts& facts, PodSummary& summary) {
  const Kind& kind = KindOfRemedy(facts.remedy);
  summary.headline = PendingHeadline(facts, kind);
  summary.cause = facts.cause;
  summary.in_the_way = InTheWay(kind, facts.remedy);
  summary.actions = ActionsOf(facts.remedy);
  for (const std::string& remedy : facts.other_remedies) {
    for (PodSummary::Action& action : ActionsOf(remedy)) {
      if (std::ranges::find(summary.actions, action) != summary.actions.end()) continue;
      summary.actions.push_back(std::move(action));
    }
  }
  const bool soon = kind.start == Start::kSoon || (facts.partitioning && facts.remedy.empty());
  const bool may_be_known = soon || kind.start == Start::kOthers;
  if (may_be_known && facts.estimate) {
    summary.eta = facts.estimate;
    summary.eta_reason = facts.estimate_by;
  } else if (kind.code == remedies::kNoneNeeded) {
    summary.eta_reason = facts.remedy.substr(kind.begins.size());
  } else if (may_be_known && !facts.estimate_by.empty()) {
    summary.eta_reason = facts.estimate_by;
  } else {
    summary.eta_reason = ReasonOf(soon ? Start::kSoon : kind.start, kind.code);
  }
}

std::string DevicesText(const PodFacts& facts) {
  return facts.devices.empty() ? "" : fmt::format(" ({})", Join(facts.devices, ", "));
}

std::string EvictedText(const PodEviction& eviction) {
  std::string text = "evicted";
  if (!eviction.by.empty()) text += " by " + eviction.by;
  text += eviction.preemptor.empty() ? " for another pod" : " for " + eviction.preemptor;
  return text + (eviction.for_quota ? ", whose elastic quota guarantees these resources"
                                    : ", which has a higher priority");
}

// docs/quotas.md has these rules.
std::string RuleOfEviction(const PodFacts& facts) {
  const std::string higher = fmt::format("with a priority above {}", facts.priority);
  if (facts.capacity == "over-quota") {
    return fmt::format(
        "pods of other quotas that are owed what it borrows, and pods of its own "
        "quota {}",
        higher);
  }
  if (facts.capacity == "in-quota") return "only pods of its own quota " + higher;
  return "pods " + higher;
}

std::string EvictableBy(const PodFacts& facts) {
  std::string text = RuleOfEviction(facts);
  if (!facts.evictors.empty()) text += "; now by " + PodsText(facts.evictors, "", " or ");
  return text;
}

std::string_view StandingText(const PodFacts& facts) {
  if (facts.capacity == "over-quota") return "it borrows beyond min of its quota";
  return facts.capacity == "in-quota" ? "min of its quota covers it" : std::string_view();
}

void SummarizePlaced(const PodFacts& facts, PodSummary& summary) {
  const std::string on = facts.node.empty() ? "" : " on node " + facts.node;
  summary.cause = facts.cause;
  if (facts.state == "running") {
    summary.headline = fmt::format("{} runs{}{}{}", facts.pod, on, DevicesText(facts),
                                   facts.since ? " since " + FormatTime(*facts.since) : "");
    summary.cause = StandingText(facts);
    summary.evictable_by = EvictableBy(facts);
  } else if (facts.state == "starting") {
    summary.headline = fmt::format("{} is starting{}{}", facts.pod, on, DevicesText(facts));
    summary.evictable_by = EvictableBy(facts);
  } else if (facts.state == "terminating") {
    const std::string_view comma = facts.eviction && !on.empty() ? "," : "";
    summary.headline =
        fmt::format("{} is being {}{}{}", facts.pod,
                    facts.eviction ? EvictedText(*facts.eviction) : "deleted", comma, on);
    if (facts.eviction) summary.cause = facts.eviction->why;
    if (facts.ends) summary.eta_reason = "it is removed by " + FormatTime(*facts.ends);
  } else if (facts.state == "failed") {
    summary.headline = facts.eviction
                           ? fmt::format("{} was {}", facts.pod, EvictedText(*facts.eviction))
                           : fmt::format("{} failed{}", facts.pod, on);
    if (facts.eviction && summary.cause.empty()) summary.cause = facts.eviction->why;
  } else {
    summary.headline = fmt::format("{} has completed{}", facts.pod, on);
  }
  if (summary.eta_reason.empty()) summary.eta_reason = "none: it is not pending";
}

// In front of the reasons by node, if there are such.
std::string CauseOf(const Explanation& why) {
  for (const std::string* cause : {&why.gate, &why.quota, &why.gang}) {
    if (!cause->empty()) return *cause;
  }
  if (why.impossible) return why.impossible->message;
  if (why.place || why.being_partitioned) return "";
  if (!why.diagnosis.entries.empty()) return why.diagnosis.ToString();
  return "";
}

std::string ProgressOf(const Explanation& why) {
  if (!why.gate.empty() || !why.gang.empty()) return "";
  if (why.being_partitioned) {
    return fmt::format("{} waits for GPUs of node {} to be partitioned for it", why.pod,
                       why.being_partitioned->node);
  }
  if (why.awaited || !why.awaits_agent.empty()) {
    return fmt::format("{} waits for capacity that is being freed for it on node {}", why.pod,
                       why.awaited ? why.awaited->node : why.awaits_agent);
  }
  if (why.preemption) {
    return fmt::format("{} starts when pods on node {} have been evicted for it", why.pod,
                       why.preemption->node);
  }
  if (!why.place || !why.quota.empty() || why.remedy_code != remedies::kNoneNeeded) return "";
  return fmt::format(
      "{} fits on node {}{}", why.pod, why.place->node,
      why.place->repartition.made.empty() ? " as it is" : ", whose GPUs are partitioned for it");
}

// "3g.20gb" of "nvidia.com/mig-3g.20gb"; "" for other resources than GPUs.
std::string_view UnitOf(std::string_view resource) {
  constexpr std::string_view kVendor = "nvidia.com/", kMig = "mig-";
  if (!resource.starts_with(kVendor)) return {};
  resource.remove_prefix(kVendor.size());
  if (resource.starts_with(kMig)) resource.remove_prefix(kMig.size());
  return resource;
}

}  // namespace

PodSummary Summarize(const PodFacts& facts) {
  PodSummary summary;
  facts.state == kPending ? SummarizePending(facts, summary) : SummarizePlaced(facts, summary);
  return summary;
}

PodFacts FactsOf(const Explanation& why) {
  PodFacts facts{why.pod, std::string(kPending), why.demand, CauseOf(why), why.remedy};
  facts.other_remedies = why.other_remedies;
  facts.progress = ProgressOf(why);
  facts.partitioning = why.being_partitioned.has_value();
  facts.priority = why.priority;
  return facts;
}

std::string DemandText(std::vector<std::pair<std::string, int64_t>> requests) {
  std::ranges::sort(requests);
  std::vector<std::string> parts;
  for (const auto& [resource, amount] : requests) {
    const std::string_view unit = UnitOf(resource);
    if (unit.empty() || amount <= 0) continue;
    parts.push_back(amount == 1 ? std::string(unit) : fmt::format("{} x {}", amount, unit));
  }
  return Join(parts, " and ");
}

std::string DemandText(const cluster::Pod& pod) {
  std::vector<std::pair<std::string, int64_t>> requests;
  for (const auto& [resource, amount] : cluster::PodRequests(pod)) {
    requests.emplace_back(resource, amount.Value());
  }
  return DemandText(std::move(requests));
}

std::pair<std::string, std::string> SplitRemedy(std::string_view message) {
  const size_t at = message.find(kRemedySeparator);
  if (at == std::string_view::npos) return {std::string(message), ""};
  std::string_view remedy = message.substr(at + kRemedySeparator.size());
  if (remedy.ends_with('.')) remedy.remove_suffix(1);
  return {std::string(message.substr(0, at)), std::string(remedy)};
}

std::string_view RemedyCodeOf(std::string_view remedy) { return KindOfRemedy(remedy).code; }

JsonObject ToJson(const PodSummary& summary) {
  JsonArray actions;
  for (const PodSummary::Action& action : summary.actions) {
    actions.push_back(JsonObject{{"text", action.text}, {"brings", action.brings}});
  }
  return {{"headline", summary.headline},
          {"cause", summary.cause},
          {"in_the_way", JsonArray(summary.in_the_way.begin(), summary.in_the_way.end())},
          {"actions", std::move(actions)},
          {"eta", summary.eta ? Json(FormatTime(*summary.eta)) : Json()},
          {"eta_reason", summary.eta_reason},
          {"evictable_by", summary.evictable_by}};
}

}  // namespace nos::scheduling
