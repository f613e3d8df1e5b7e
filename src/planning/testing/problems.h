// Planning problems for tests: built by hand or at random, and checks of their solutions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planning/model/draft.h"
#include "planning/model/problem.h"

namespace nos::planning::testing {

// Builds a Problem with one resource (cpu). By default every node admits every pod.
class ProblemBuilder {
 public:
  // Returns the node's index. A GPU is its model and instances: "A30", "A100-40GB 1g.5gb@0
  // 3g.20gb@4*", "MPS-39GB 10gb 20gb*"; '*' marks used ones. "A100-40GB|MPS-39GB 1g.5gb@0": it may
  // switch to the second model.
  int Node(int64_t cpu, const std::vector<std::string>& gpus);
  // Returns the class's index. `slices`: profile names, "3g.20gb", repeated for several.
  int Pods(int count, const std::vector<std::string>& slices, int level = 0, int64_t cpu = 0);
  // Restricts the class to these nodes.
  void Only(int cls, const std::vector<int>& nodes);
  PodClass& Class(int cls) { return problem_.classes[cls]; }
  ProblemGpu& Gpu(int gpu) { return problem_.gpus[gpu]; }
  Problem Build();

 private:
  uint16_t Model(std::string_view name);
  uint16_t SliceIndex(const std::string& profile);

  Problem problem_;
  std::vector<std::string> slice_names_;
  std::vector<std::vector<int>> only_;  // by class; empty: any node
};

// The first fault of the draft as a plan: used instances destroyed, overlaps, resources exceeded,
// pods on forbidden nodes, free instances destroyed on a GPU that serves no pod, and so on. "" if
// there is none.
std::string Fault(const Draft& draft);

// The result of an exhaustive search that serves the levels best, in their order. Independent of
// the planner. Slow: for about a dozen pods.
struct Reference {
  std::vector<int64_t> score;  // by level: value served
  int changes = 0;             // fewest instances created and destroyed for that score
  int most_pods = 0;           // maximum of any plan
};
Reference SolveByForce(const Problem& problem);

}  // namespace nos::planning::testing
