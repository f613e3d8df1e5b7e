// Sums up verdicts over nodes: "3 Insufficient cpu, 2 node(s) were unschedulable".
//
//   DiagnosisBuilder builder;
//   builder.Add(verdict);                     // of one node
//   builder.Add(class_verdict, 40);           // of forty identical nodes
//   Diagnosis diagnosis = std::move(builder).Finish();
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "scheduling/framework.h"

namespace nos::scheduling {

class DiagnosisBuilder {
 public:
  DiagnosisBuilder() = default;
  // Continues from an existing diagnosis.
  explicit DiagnosisBuilder(const Diagnosis& diagnosis);
  void Add(const Verdict& verdict, int nodes = 1, const Plugin* by = nullptr);
  // Replaces one verdict that was added as fitting by a refusal.
  void Correct(const Verdict& verdict, const Plugin* by);
  // A pre-filter refused the pod for all nodes, so no node is checked.
  void Refuse(const Verdict& verdict, int nodes, const Plugin* by);
  Diagnosis Finish() &&;

 private:
  // Keyed by message first, which mostly determines code and kind.
  std::map<std::tuple<std::string, std::string, Verdict::Kind>, int> counts_;
  std::set<const Plugin*> by_;
  int nodes_ = 0, feasible_ = 0;
  bool asked_ = true;
};

}  // namespace nos::scheduling
