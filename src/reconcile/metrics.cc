#include "reconcile/metrics.h"

namespace nos::reconcile {

ReconcileResult MeteredReconciler::Reconcile(const std::string& key, const Listers& view,
                                             kube::Client& client, const Clock& clock) {
  const SteadyClock watch;
  const Time begun = watch.Now();
  ReconcileResult outcome = reconciler_.Reconcile(key, view, client, clock);
  metrics_.Observe(kReconcileDuration, {{"controller", name_}}, watch.Now() - begun);
  metrics_.Count(kReconciles,
                 {{"controller", name_}, {"result", outcome.error.ok() ? "ok" : "error"}});
  return outcome;
}

}  // namespace nos::reconcile
