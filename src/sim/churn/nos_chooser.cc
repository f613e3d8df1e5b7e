#include "gpu/fleet.h"
#include "gpu/fragmentation.h"
#include "sim/churn/chooser.h"

namespace nos::sim {
namespace {

class NosChooser : public Chooser {
 public:
  explicit NosChooser(const ChurnOptions& options)
      : rule_(*options.model),
        fleet_(rule_, static_cast<size_t>(options.gpus)),
        moves_(options.moves) {}

  std::optional<gpu::Relocation> Choose(gpu::ProfileId profile) override {
    if (const auto spot = fleet_.Choose(profile)) return gpu::Relocation{*spot, {}, 0};
    return gpu::FindRelocation(fleet_, profile, moves_);
  }

  void Set(uint32_t gpu, gpu::LayoutId layout) override { fleet_.Set(gpu, layout); }

 private:
  gpu::Fragmentation rule_;
  gpu::Fleet fleet_;
  int moves_;
};

}  // namespace

std::unique_ptr<Chooser> MakeNosChooser(const ChurnOptions& options) {
  return std::make_unique<NosChooser>(options);
}

}  // namespace nos::sim
