#include "cmd/cli/layout_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace nos::cmd {

std::string LayoutText(const gpu::Model& model, std::vector<LayoutPart> parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const LayoutPart& a, const LayoutPart& b) {
    return a.placement.start < b.placement.start;
  });
  std::vector<std::string> groups;
  while (!parts.empty()) {
    const auto profile = parts.front().placement.profile;
    std::string group;
    for (const LayoutPart& part : parts) {
      if (part.placement.profile != profile) continue;
      group += group.empty() ? model.profile(profile).name + "@" : ",";
      group += fmt::format("{}{}", part.mark, part.placement.start);
    }
    std::erase_if(parts, [&](const LayoutPart& part) { return part.placement.profile == profile; });
    groups.push_back(std::move(group));
  }
  return groups.empty() ? "-" : Join(groups, " ");
}

}  // namespace nos::cmd
