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
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Why a pod has no node: each reason with the number of nodes that gave it, most frequent first.
struct Diagnosis {
  struct Entry {
    std::string code, message;
    Verdict::Kind kind = Verdict::Kind::kUnschedulable;
    int nodes = 0;
  };
  int nodes = 0;     // in the cluster
  int feasible = 0;  // nodes that fit
  std::vector<Entry> entries;
  std::vector<const Plugin*> by;  // plugins that refused, unordered
  bool asked = true;              // false: a pre-filter refused before any node was checked

  // Text in kube-scheduler's words, except that reasons are sorted by frequency: "0/5 nodes are
  // available: 3 Insufficient cpu, 2 node(s) were unschedulable."
  std::string ToString() const;
};

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
