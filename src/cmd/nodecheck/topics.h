// The checks of a machine. Pure functions of a Machine, one for each topic.
#pragma once

#include <vector>

#include "cmd/findings/verdict.h"
#include "cmd/nodecheck/machine.h"

namespace nos::cmd {

void CheckDriver(const Machine& machine, Findings& findings);
void CheckGpus(const Machine& machine, Findings& findings);
void CheckReadings(const Machine& machine, Findings& findings);
void CheckFiles(const Machine& machine, Findings& findings);
void CheckMachine(const Machine& machine, Findings& findings);  // all of the above

}  // namespace nos::cmd
