#include "study/churn/host.h"

#include <utility>
#include <vector>

#include "study/churn/chooser.h"
#include "study/churn/claims_host.h"
#include "study/churn/packing.h"

namespace nos::study {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;

// GPUs with instances at exact placements. Checks every change, because the chooser may be wrong.
class PlacedHost : public Host {
 public:
  PlacedHost(const ChurnOptions& options, std::unique_ptr<Chooser> chooser)
      : table_(options.model->layouts()),
        max_moves_(static_cast<size_t>(options.moves)),
        layouts_(static_cast<size_t>(options.gpus), LayoutTable::kEmpty),
        owners_(layouts_.size() * table_.placements().size()),
        chooser_(std::move(chooser)) {}

  Result<bool> Admit(JobId job, gpu::ProfileId profile) override {
    const auto decision = chooser_->Choose(profile);
    if (!decision) return false;
    if (decision->moves.size() > max_moves_) return Internal("churn: too many moves");
    if (table_.placements()[decision->spot.placement].profile != profile) {
      return Internal("churn: placed as another profile");
    }
    NOS_RETURN_IF_ERROR(Carry(decision->moves));
    NOS_RETURN_IF_ERROR(Put(job, decision->spot));
    return true;
  }

  void Release(JobId job) override { Take(spots_[job]); }
  int64_t moves() const override { return moves_; }

 private:
  JobId& Owner(Spot spot) {
    return owners_[spot.gpu * table_.placements().size() + spot.placement];
  }

  // All moved instances are removed before any is placed.
  Status Carry(const std::vector<Move>& moves) {
    std::vector<JobId> jobs;
    for (const Move& move : moves) {
      if (((table_.Members(layouts_[move.from.gpu]) >> move.from.placement) & 1U) == 0) {
        return Internal("churn: moved an instance that does not exist");
      }
      jobs.push_back(Owner(move.from));
      Take(move.from);
    }
    for (size_t i = 0; i < moves.size(); ++i) NOS_RETURN_IF_ERROR(Put(jobs[i], moves[i].to));
    moves_ += static_cast<int64_t>(moves.size());
    return Status::Ok();
  }

  Status Put(JobId job, Spot spot) {
    const LayoutId next = table_.Add(layouts_[spot.gpu], spot.placement);
    if (next == LayoutTable::kIllegal) return Internal("churn: two instances overlap");
    SetLayout(spot.gpu, next);
    Owner(spot) = job;
    if (spots_.size() <= job) spots_.resize(job + size_t{1});
    spots_[job] = spot;
    return Status::Ok();
  }

  void Take(Spot spot) { SetLayout(spot.gpu, table_.Remove(layouts_[spot.gpu], spot.placement)); }

  void SetLayout(uint32_t gpu, LayoutId layout) {
    layouts_[gpu] = layout;
    chooser_->Set(gpu, layout);
  }

  const LayoutTable& table_;
  const size_t max_moves_;
  std::vector<LayoutId> layouts_;  // by GPU
  std::vector<JobId> owners_;      // by GPU and placement; valid for placements in the layout
  std::vector<Spot> spots_;        // by job
  std::unique_ptr<Chooser> chooser_;
  int64_t moves_ = 0;
};

// Has no placements: accepts a job whenever all instances can be repacked.
class RepackHost : public Host {
 public:
  RepackHost(const ChurnOptions& options, PackingTest test)
      : gpus_(options.gpus), test_(std::move(test)), counts_(options.model->profiles().size()) {}

  Result<bool> Admit(JobId job, gpu::ProfileId profile) override {
    ++counts_[profile];
    const bool fits = test_.Fits(counts_, gpus_);
    if (!fits) --counts_[profile];
    if (profiles_.size() <= job) profiles_.resize(job + size_t{1});
    profiles_[job] = profile;
    return fits;
  }

  void Release(JobId job) override { --counts_[profiles_[job]]; }

 private:
  int64_t gpus_;
  PackingTest test_;
  std::vector<int64_t> counts_;           // by profile
  std::vector<gpu::ProfileId> profiles_;  // by job
};

}  // namespace

Result<std::unique_ptr<Host>> MakeHost(const ChurnOptions& options, const Mix& mix) {
  if (options.claims) return MakeClaimsHost(options, mix);
  std::unique_ptr<Host> host;
  if (options.policy == ChurnPolicy::kRepack) {
    NOS_ASSIGN(PackingTest test, PackingTest::For(*options.model, mix));
    host = std::make_unique<RepackHost>(options, std::move(test));
  } else if (options.policy == ChurnPolicy::kNos) {
    host = std::make_unique<PlacedHost>(options, MakeNosChooser(options));
  } else {
    host = std::make_unique<PlacedHost>(options, MakeScanChooser(options, mix));
  }
  return host;
}

}  // namespace nos::study
