#include "scheduler_differential/compare.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace nos::differential {

namespace {

// Kubernetes 1.31 names the taint in the reason: "1 node(s) had untolerated taint {a: b}, 2 node(s)
// had untolerated taint {c: }". Later versions count such nodes together.
void MergeTaints(std::vector<std::string>& parts) {
  constexpr std::string_view kNamed = " node(s) had untolerated taint {";
  int64_t nodes = 0;
  std::erase_if(parts, [&](const std::string& part) {
    const size_t at = part.find(kNamed);
    if (at != std::string::npos) nodes += ParseInt(part.substr(0, at)).value_or(0);
    return at != std::string::npos;
  });
  if (nodes > 0) parts.push_back(fmt::format("{} node(s) had untolerated taint(s)", nodes));
}

}  // namespace

std::vector<std::string> ReasonsOf(std::string_view message) {
  std::vector<std::string> parts;
  // The messages of post-filters follow.
  for (const char* next :
       {". preemption: ", ". no new claims to deallocate", ". not found", ". still not schedulable",
        ". deallocation of ResourceClaim completed"}) {
    message = message.substr(0, message.find(next));
  }
  while (message.ends_with('.')) message.remove_suffix(1);
  const size_t head = message.find(": ");
  parts.emplace_back(message.substr(0, head));
  if (head == std::string_view::npos) return parts;
  message.remove_prefix(head + 2);
  while (true) {
    const size_t end = message.find(", ");
    parts.emplace_back(message.substr(0, end));
    if (end == std::string_view::npos) break;
    message.remove_prefix(end + 2);
  }
  MergeTaints(parts);
  std::sort(parts.begin() + 1, parts.end());
  return parts;
}

std::string ScoreDisagreement(const KubeScores& kube, const Opinion& nos,
                              const std::set<std::string>& left_out) {
  if (kube.scores.empty()) return "";
  for (const auto& [name, node] : nos.nodes) {
    const auto theirs = kube.scores.find(name);
    if (theirs == kube.scores.end()) {
      if (node.verdict.fits()) return fmt::format("only nos finds {} feasible", name);
      continue;
    }
    if (!node.verdict.fits()) {
      return fmt::format("only kube-scheduler finds {} feasible: {}", name, node.verdict.message);
    }
    for (const auto& [plugin, score] : theirs->second) {
      if (left_out.contains(plugin)) continue;
      const auto ours = node.scores.find(plugin);
      const int64_t own = ours == node.scores.end() ? 0 : ours->second;
      if (own != score && !(nos.pod_level && plugin == "NodeResourcesFit")) {
        return fmt::format("{} scores {} with {}, nos with {}", plugin, name, score, own);
      }
    }
    for (const auto& [plugin, score] : node.scores) {
      if (score != 0 && !left_out.contains(plugin) && !theirs->second.contains(plugin)) {
        return fmt::format("only nos scores {} with {}: {}", name, plugin, score);
      }
    }
  }
  return "";
}

namespace {

std::string OnBound(const Outcome& kube, const Opinion& nos) {
  const auto found = nos.nodes.find(kube.node);
  if (found == nos.nodes.end()) return fmt::format("nos does not know {}", kube.node);
  if (!found->second.verdict.fits()) {
    return fmt::format("kube-scheduler takes {}, nos says: {}", kube.node,
                       found->second.verdict.message);
  }
  if (std::string scores = ScoreDisagreement(kube.log, nos); !scores.empty()) return scores;
  if (kube.log.scores.empty() && nos.feasible != 1) {
    return fmt::format("to kube-scheduler {} is the only feasible node, to nos one of {}",
                       kube.node, nos.feasible);
  }
  if (found->second.total == nos.best || nos.pod_level) return "";
  return fmt::format("kube-scheduler takes {} with {}, to nos {} is the best with {}", kube.node,
                     found->second.total, nos.first_best, nos.best);
}

using Victims = std::vector<std::shared_ptr<const cluster::Pod>>;

std::string NamesOf(const Victims& victims) {
  std::string names;
  for (const auto& victim : victims) {
    names += fmt::format(" {}({})", victim->Key(), victim->priority);
  }
  return names;
}

// Pods with the same priority and start time, or not started, are interchangeable as victims.
auto HarmOf(const Victims& victims) {
  std::vector<std::pair<int32_t, std::optional<Time>>> harm;
  for (const auto& victim : victims) harm.emplace_back(victim->priority, victim->started);
  std::ranges::sort(harm);
  return harm;
}

std::string OnPreemption(const Outcome& kube, const Opinion& nos) {
  if (!nos.preemption) {
    return fmt::format("kube-scheduler preempts on {}, nos does not {}", kube.nominated,
                       nos.why_not_preempt);
  }
  const auto theirs =
      std::ranges::find(nos.candidates, kube.nominated, &scheduling::Preemption::node);
  if (theirs == nos.candidates.end()) {
    return fmt::format("kube-scheduler preempts on {}, nos only elsewhere", kube.nominated);
  }
  if (IsGentler(*nos.preemption, *theirs)) {
    return fmt::format("kube-scheduler preempts on {}, which nos finds worse than {}",
                       kube.nominated, nos.preemption->node);
  }
  if (HarmOf(kube.victims) == HarmOf(theirs->victims)) return "";
  return fmt::format("victims of kube-scheduler:{}; of nos:{}", NamesOf(kube.victims),
                     NamesOf(theirs->victims));
}

std::string OnRefusal(const Outcome& kube, const Opinion& nos) {
  if (nos.feasible > 0) {
    return fmt::format("kube-scheduler refuses it ({}), nos takes {}", kube.message,
                       nos.first_best);
  }
  if (kube.reason != "Unschedulable") {
    return fmt::format("kube-scheduler says {}: {}", kube.reason, kube.message);
  }
  const std::string ours = nos.diagnosis.ToString();
  if (!kube.late && ReasonsOf(kube.message) != ReasonsOf(ours)) {
    return fmt::format("kube-scheduler says: {}\nnos says: {}", kube.message, ours);
  }
  if (!kube.nominated.empty()) return OnPreemption(kube, nos);
  if (nos.preemption) {
    return fmt::format("nos preempts on {}, kube-scheduler does not: {}", nos.preemption->node,
                       kube.message);
  }
  return "";
}

}  // namespace

std::string Disagreement(const Outcome& kube, const Opinion& nos) {
  if (!nos.contradiction.empty()) return "nos contradicts itself: " + nos.contradiction;
  return kube.reason.empty() ? OnBound(kube, nos) : OnRefusal(kube, nos);
}

std::string Describe(const Outcome& outcome) {
  std::string text;
  if (!outcome.reason.empty()) text += fmt::format("  {}: {}\n", outcome.reason, outcome.message);
  if (!outcome.nominated.empty()) {
    text += fmt::format("  nominated for {}; victims:{}\n", outcome.nominated,
                        NamesOf(outcome.victims));
  }
  if (!outcome.node.empty()) text += fmt::format("  bound to {}\n", outcome.node);
  for (const auto& [name, plugins] : outcome.log.scores) {
    int64_t total = 0;
    for (const auto& [plugin, score] : plugins) total += score;
    text += fmt::format("  {} {}:", name, total);
    for (const auto& [plugin, score] : plugins) text += fmt::format(" {}={}", plugin, score);
    text += "\n";
  }
  return text;
}

}  // namespace nos::differential
