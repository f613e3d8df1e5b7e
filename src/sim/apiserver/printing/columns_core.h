// Columns that a JSON path cannot describe: pods, nodes, events, services.
#pragma once

#include "sim/apiserver/printing/table.h"

namespace nos::sim {

Json TextCell(std::string_view text);
// "a=b,c=d" or "<none>".
Json LabelsCell(const Json* labels);

// Without the name column, with the age column.
std::vector<Column> PodColumns();
std::vector<Column> NodeColumns();
// Without name and age.
std::vector<Column> ServiceColumns();
// All columns.
std::vector<Column> EventColumns();

}  // namespace nos::sim
