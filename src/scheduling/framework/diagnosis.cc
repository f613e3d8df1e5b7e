#include "scheduling/diagnosis.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace nos::scheduling {

DiagnosisBuilder::DiagnosisBuilder(const Diagnosis& diagnosis)
    : by_(diagnosis.by.begin(), diagnosis.by.end()),
      nodes_(diagnosis.nodes),
      feasible_(diagnosis.feasible),
      asked_(diagnosis.asked) {
  for (const Diagnosis::Entry& entry : diagnosis.entries) {
    counts_[{entry.message, entry.code, entry.kind}] = entry.nodes;
  }
}

void DiagnosisBuilder::Correct(const Verdict& verdict, const Plugin* by) {
  --nodes_;
  --feasible_;
  Add(verdict, 1, by);
}

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

void DiagnosisBuilder::Refuse(const Verdict& verdict, int nodes, const Plugin* by) {
  Add(verdict, nodes, by);
  asked_ = false;
}

Diagnosis DiagnosisBuilder::Finish() && {
  Diagnosis diagnosis{nodes_, feasible_, {}, {by_.begin(), by_.end()}, asked_};
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
  // The same message may come from nodes with different kinds of verdicts.
  std::vector<std::pair<std::string_view, int>> counts;
  for (const Entry& entry : entries) {
    const auto same =
        std::ranges::find(counts, entry.message, &decltype(counts)::value_type::first);
    same == counts.end() ? (void)counts.emplace_back(entry.message, entry.nodes)
                         : (void)(same->second += entry.nodes);
  }
  std::ranges::stable_sort(counts, std::greater(), &decltype(counts)::value_type::second);
  for (const auto& [message, count] : counts) {
    text += separator;
    text += asked ? fmt::format("{} {}", count, message) : std::string(message);
    separator = ", ";
  }
  return text + ".";
}

}  // namespace nos::scheduling
