#include "gpu/fragmentation.h"
#include "study/churn/chooser.h"
#include "study/placement/fleet.h"

namespace nos::study {
namespace {

class NosChooser : public Chooser {
 public:
  explicit NosChooser(const ChurnOptions& options)
      : rule_(*options.model),
        fleet_(rule_, static_cast<size_t>(options.gpus)),
        moves_(options.moves) {}

  std::optional<Relocation> Choose(gpu::ProfileId profile) override {
    if (const auto spot = fleet_.Choose(profile)) return Relocation{*spot, {}, 0};
    return FindRelocation(fleet_, profile, moves_);
  }

  void Set(uint32_t gpu, gpu::LayoutId layout) override { fleet_.Set(gpu, layout); }

 private:
  gpu::Fragmentation rule_;
  Fleet fleet_;
  int moves_;
};

}  // namespace

std::unique_ptr<Chooser> MakeNosChooser(const ChurnOptions& options) {
  return std::make_unique<NosChooser>(options);
}

}  // namespace nos::study
