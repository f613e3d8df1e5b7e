#include "controllers/autoscaler.h"

#include <algorithm>
#include <utility>

#include "controllers/autoscaler/internal.h"

namespace nos::controllers {
namespace {

// For each answer of the API server: a look has others to ask as well.
constexpr Duration kPatience = std::chrono::seconds(15);
constexpr kube::BackOff kWriteAgain{std::chrono::seconds(1), std::chrono::minutes(5)};

}  // namespace

Autoscaler::Impl::Impl(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
                       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics)
    : config_(std::move(config)),
      frameworks_(std::move(frameworks)),
      catalogue_(catalogue),
      scaling_(std::move(scaling)),
      metrics_(metrics),
      relocations_(config_.relocations),
      signal_(config_.signal),
      lacks_(catalogue),
      untold_(kWriteAgain) {
  if (metrics_ == nullptr) return;
  // Alerts see no increase of what was not there before.
  for (const char* action : {"grow", "shrink", "move", "call-off", "close", "keep"}) {
    metrics_->Count(kScalingDecisions, {{"action", action}}, 0);
  }
}

reconcile::Outcome Autoscaler::Impl::Reconcile(const reconcile::View& view, kube::Client& client, const Clock& clock) {
  kube::Client hasty = client.Within(kPatience);
  Look look{view, hasty, clock, clock.Now()};
  TakeIn(view);
  NoteUnreadable(look);
  const Status error = LookAtPools(look);
  const reconcile::Outcome moving = relocations_.Step(view, hasty, clock);
  TakeNotes(look);
  NoteRemoved(look);
  // What it changes is counted before anything else is decided.
  const bool news = FinishRemovals(look);
  if (!news && look.now >= rest_until_ && (HasNews(view) || look.now >= decide_by_)) {
    Decide(look);
    ShowSignals(look);
  }
  ShowPools(look);
  ForgetVerdicts(view);
  TellPods(look);
  if (telling_.Due() <= clock.Now()) telling_.Tell(view, client, clock);
  return Rest(look, news, error, moving);
}

bool Autoscaler::Impl::HasNews(const reconcile::View& view) const {
  return view.pods.Version() != pods_version_ || view.nodes.Version() != nodes_version_ ||
         view.around->Version() != around_version_;
}

reconcile::Outcome Autoscaler::Impl::Rest(const Look& look, bool news, const Status& error,
                               const reconcile::Outcome& moving) const {
  const Time now = look.clock.Now();
  Time next = HasNews(look.view) ? rest_until_ : std::max(rest_until_, decide_by_);
  for (const Pool& pool : look.pools) {
    next = std::min(next, pool.known->read_again);
    const PoolStatus& status = pool.state.status;
    // What is over stays in the status while its pool cannot be read.
    const bool opens = status.closed_until && *status.closed_until > look.now;
    if (opens) next = std::min(next, *status.closed_until);
  }
  next = std::min(next, telling_.Due());
  if (const auto due = untold_.NextDue()) next = std::min(next, std::max(*due, pods_pace_.next()));
  if (moving.again) next = std::min(next, now + *moving.again);
  if (news) next = now;
  reconcile::Outcome outcome = reconcile::Outcome::Again(std::max(next - now, Duration::zero()));
  outcome.error = moving.error.ok() ? error : moving.error;
  return outcome;
}

Autoscaler::Autoscaler(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
                       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(frameworks), catalogue,
                                   std::move(scaling), metrics)) {}

Autoscaler::~Autoscaler() = default;

reconcile::Outcome Autoscaler::Reconcile(const std::string&, const reconcile::View& view, kube::Client& client,
                              const Clock& clock) {
  return impl_->Reconcile(view, client, clock);
}

const std::deque<ScalingDecision>& Autoscaler::decisions() const { return impl_->decisions(); }

reconcile::RunnerOptions WatchingForAutoscaler(reconcile::RunnerOptions options) {
  options.watch_around = true;
  options.around_kinds.clear();
  return options;
}

}  // namespace nos::controllers
