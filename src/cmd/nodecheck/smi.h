// The values that nvidia-smi prints, compared with nos's own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nos::cmd {

struct Machine;

// The command that prints them.
std::vector<std::string> SmiQuery(const std::string& program);
// Its output: UUID -> name of the query -> value. Lines with another number of values are skipped.
std::map<std::string, std::map<std::string, std::string>> ReadSmiTable(std::string_view output);
// "GPU 0: memory.total is 81559 here, 40960 there" for each difference; readings that change all
// the time may differ by a tolerance. `compared` counts the values.
std::vector<std::string> SmiDifferences(const Machine& machine, size_t& compared);

}  // namespace nos::cmd
