// How one GPU is cut, as a cell of a table: profiles in the order of their first slots, each with
// the slots its instances begin at: "1g.5gb@*0,*1,2 3g.20gb@*4".
#pragma once

#include <string>
#include <vector>

#include "gpu/catalogue.h"

namespace nos::cmd {

struct LayoutPart {
  gpu::Placement placement;
  std::string mark{};  // before the slot: "*" for one in use
};

// "-" when there is nothing.
std::string LayoutText(const gpu::Model& model, std::vector<LayoutPart> parts);

}  // namespace nos::cmd
