// Adds up verdicts over nodes: "3 Insufficient cpu, 2 node(s) were unschedulable".
//
//   DiagnosisBuilder builder;
//   builder.Add(verdict);                     // of one node
//   builder.Add(class_verdict, 40);           // of forty nodes that are alike
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
  // Goes on from there.
  explicit DiagnosisBuilder(const Diagnosis& diagnosis);
  void Add(const Verdict& verdict, int nodes = 1, const Plugin* by = nullptr);
  // One that was said to fit is refused after all.
  void Correct(const Verdict& verdict, const Plugin* by);
  // No node need be asked: it is all the same to a pre-filter.
  void Refuse(const Verdict& verdict, int nodes, const Plugin* by);
  Diagnosis Finish() &&;

 private:
  // By message, which tells entries apart (code and kind follow from it, up to the node).
  std::map<std::tuple<std::string, std::string, Verdict::Kind>, int> counts_;
  std::set<const Plugin*> by_;
  int nodes_ = 0, feasible_ = 0;
  bool asked_ = true;
};

}  // namespace nos::scheduling
