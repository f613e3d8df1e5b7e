// Partitioning of one GPU as a table cell: profiles in the order of their first slots, each with
// the start slots of its instances: "1g.5gb@*0,*1,2 3g.20gb@*4".
#pragma once

#include <string>
#include <vector>

#include "gpu/catalogue.h"

namespace nos::cmd {

struct LayoutPart {
  gpu::Placement placement;
  std::string mark{};  // printed before the slot: "*" for a slice in use
};

// "-" for an empty list.
std::string LayoutText(const gpu::Model& model, std::vector<LayoutPart> parts);

}  // namespace nos::cmd
