// Runs a scenario in a virtual cluster and reports the expectations that failed.
#pragma once

#include <string>
#include <vector>

#include "sim/scenarios/steps.h"

namespace nos::sim {

struct ScenarioFailure {
  int line = 0;                  // 0: the scenario as a whole
  std::string text;              // the step as written
  std::string expected, actual;  // `expected` may be empty
};

struct ScenarioReport {
  std::string source;
  std::vector<ScenarioFailure> failures;
  std::vector<std::string> events;  // the last events of the virtual cluster
  bool ok() const { return failures.empty(); }
};

ScenarioReport RunScenario(const Scenario& scenario);

// "FILE:LINE: expect a placed on n1", then the expected and the actual result.
std::string FormatFailure(const ScenarioReport& report, const ScenarioFailure& failure);

}  // namespace nos::sim
