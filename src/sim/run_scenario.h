// Runs a scenario in a virtual cluster and says which expectations were not met.
#pragma once

#include <string>
#include <vector>

#include "sim/scenarios/scenario.h"

namespace nos::sim {

struct ScenarioFailure {
  int line = 0;                  // 0: about the scenario as a whole
  std::string text;              // the step as written
  std::string expected, actual;  // `expected` may be empty
};

struct ScenarioReport {
  std::string source;
  std::vector<ScenarioFailure> failures;
  std::vector<std::string> events;  // of the virtual cluster, the latest
  bool ok() const { return failures.empty(); }
};

ScenarioReport RunScenario(const Scenario& scenario);

// "FILE:LINE: expect a placed on n1", then what was expected and what came instead.
std::string FormatFailure(const ScenarioReport& report, const ScenarioFailure& failure);

}  // namespace nos::sim
