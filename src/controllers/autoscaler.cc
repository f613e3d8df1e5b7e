#include "controllers/autoscaler.h"

#include <algorithm>
#include <utility>

#include "controllers/autoscaler/internal.h"

namespace nos::controllers {
namespace {

// Time limit of each API call, so that one slow call does not use up a whole reconciliation.
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
  // Initialise the counters: Prometheus increase() misses the first event of a series that starts
  // at 1.
  for (const char* action : {"grow", "shrink", "move", "call-off", "close", "keep"}) {
    metrics_->Count(kScalingDecisions, {{"action", action}}, 0);
  }
}

reconcile::ReconcileResult Autoscaler::Impl::Reconcile(const reconcile::Listers& view,
                                                       kube::Client& client, const Clock& clock) {
  // 1. Bring the state up to date: cached objects, then the wanted and existing nodes of each pool.
  kube::Client hasty = client.Within(kPatience);
  Look look{view, hasty, clock, clock.Now()};
  TakeIn(view);
  NoteUnreadable(look);
  const Status error = LookAtPools(look);
  // 2. Continue relocations and node removals. If a removal changes a pool, the counts above are
  //    out of date, so the next call decides.
  const reconcile::ReconcileResult moving = relocations_.Step(view, hasty, clock);
  TakeNotes(look);
  NoteRemoved(look);
  const bool news = FinishRemovals(look);
  // 3. Decide about pending pods and idle nodes, if anything changed or a deadline has passed.
  if (!news && look.now >= rest_until_ && (HasNews(view) || look.now >= decide_by_)) {
    Decide(look);
    ShowSignals(look);
  }
  // 4. Publish results last: they include what steps 1 to 3 decided.
  ShowPools(look);
  ForgetVerdicts(view);
  TellPods(look);
  if (telling_.Due() <= clock.Now()) telling_.Tell(view, client, clock);
  return Rest(look, news, error, moving);
}

bool Autoscaler::Impl::HasNews(const reconcile::Listers& view) const {
  return view.pods.Version() != pods_version_ || view.nodes.Version() != nodes_version_ ||
         view.around->Version() != around_version_;
}

reconcile::ReconcileResult Autoscaler::Impl::Rest(const Look& look, bool news, const Status& error,
                                                  const reconcile::ReconcileResult& moving) const {
  const Time now = look.clock.Now();
  Time next = HasNews(look.view) ? rest_until_ : std::max(rest_until_, decide_by_);
  for (const Pool& pool : look.pools) {
    next = std::min(next, pool.known->read_again);
    const PoolStatus& status = pool.state.status;
    // A closed_until in the past can remain in the status while the pool cannot be read.
    const bool opens = status.closed_until && *status.closed_until > look.now;
    if (opens) next = std::min(next, *status.closed_until);
  }
  next = std::min(next, telling_.Due());
  if (const auto due = untold_.NextDue()) next = std::min(next, std::max(*due, pods_pace_.next()));
  if (moving.again) next = std::min(next, now + *moving.again);
  if (news) next = now;
  reconcile::ReconcileResult outcome =
      reconcile::ReconcileResult::Again(std::max(next - now, Duration::zero()));
  outcome.error = moving.error.ok() ? error : moving.error;
  return outcome;
}

Autoscaler::Autoscaler(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
                       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(frameworks), catalogue,
                                   std::move(scaling), metrics)) {}

Autoscaler::~Autoscaler() = default;

reconcile::ReconcileResult Autoscaler::Reconcile(const std::string&, const reconcile::Listers& view,
                                                 kube::Client& client, const Clock& clock) {
  return impl_->Reconcile(view, client, clock);
}

const std::deque<ScalingDecision>& Autoscaler::decisions() const { return impl_->decisions(); }

reconcile::RunnerOptions WatchingForAutoscaler(reconcile::RunnerOptions options) {
  options.watch_around = true;
  options.around_kinds.clear();
  return options;
}

}  // namespace nos::controllers
