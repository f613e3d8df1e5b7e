#include "controllers/autoscaler/decision_schedule.h"

namespace nos::controllers {
namespace {

constexpr Duration kMinRest = std::chrono::seconds(1), kMaxRest = std::chrono::minutes(1);

}  // namespace

bool DecisionSchedule::HasNews(const reconcile::Listers& view) const {
  return view.pods.Version() != pods_version_ || view.nodes.Version() != nodes_version_ ||
         view.context->Version() != context_version_;
}

bool DecisionSchedule::IsDue(const reconcile::Listers& view, Time now) const {
  return now >= rest_until_ && (HasNews(view) || now >= decide_by_);
}

void DecisionSchedule::Begin(const reconcile::Listers& view, Time begin) {
  pods_version_ = view.pods.Version();
  nodes_version_ = view.nodes.Version();
  context_version_ = view.context->Version();
  decide_by_ = begin + longest_;
}

void DecisionSchedule::End(Time begin, Time end) {
  rest_until_ = end + std::clamp<Duration>(10 * (end - begin), kMinRest, kMaxRest);
}

Time DecisionSchedule::Next(const reconcile::Listers& view) const {
  return HasNews(view) ? rest_until_ : std::max(rest_until_, decide_by_);
}

}  // namespace nos::controllers
