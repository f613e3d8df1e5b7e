#include "scheduling/diagnosis.h"

#include <fmt/core.h>

#include <algorithm>

namespace nos::scheduling {

void DiagnosisBuilder::Add(const Verdict& verdict, int nodes, const Plugin* by) {
  nodes_ += nodes;
  if (by != nullptr && !verdict.fits()) by_.insert(by);
  if (verdict.fits()) {
    feasible_ += nodes;
    return;
  }
  counts_[{verdict.message, verdict.code, verdict.kind}] += nodes;
  for (const Reason& reason : verdict.more) {
    counts_[{reason.message, reason.code, verdict.kind}] += nodes;
  }
}

Diagnosis DiagnosisBuilder::Finish() && {
  Diagnosis diagnosis{nodes_, feasible_, {}, {by_.begin(), by_.end()}};
  for (const auto& [key, nodes] : counts_) {
    const auto& [message, code, kind] = key;
    diagnosis.entries.push_back({code, message, kind, nodes});
  }
  std::stable_sort(diagnosis.entries.begin(), diagnosis.entries.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  return diagnosis;
}

std::string Diagnosis::ToString() const {
  if (nodes == 0) return "no nodes available to schedule pods";
  std::string text = fmt::format("{}/{} nodes are available", feasible, nodes);
  std::string_view separator = ": ";
  for (const Entry& entry : entries) {
    text += fmt::format("{}{} {}", separator, entry.nodes, entry.message);
    separator = ", ";
  }
  return text + ".";
}

}  // namespace nos::scheduling
