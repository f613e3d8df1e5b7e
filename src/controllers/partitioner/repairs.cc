#include "controllers/partitioner/repairs.h"

#include <set>
#include <utility>

namespace nos::controllers {

std::vector<Repairs::Found> Repairs::Update(const std::vector<Node>& nodes, size_t limit,
                                            Time now) {
  std::vector<Found> found;
  std::set<std::string, std::less<>> present;
  for (const Node& node : nodes) {
    const std::string& name = node->meta.name;
    present.insert(name);
    if (found.size() >= limit || rests_.Resting(name, now)) continue;
    Node& whole = whole_[name];
    if (whole == node) continue;
    cluster::SpecRepair repair =
        cluster::RepairSpec(*node, cluster::ReadNodeGpus(*node, catalogue_));
    if (repair.patch.empty()) {
      whole = node;
      continue;
    }
    rests_.FailedWithReset(name, now);
    found.push_back({node, std::move(repair)});
  }
  std::erase_if(whole_, [&](const auto& item) { return !present.contains(item.first); });
  rests_.ForgetIf([&](const std::string& name, const auto&) { return !present.contains(name); });
  return found;
}

}  // namespace nos::controllers
