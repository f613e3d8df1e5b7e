#include "controllers/relocation/outcome.h"

namespace nos::controllers {
namespace {

constexpr Duration kAfterConflict = std::chrono::seconds(1);

}  // namespace

void StepOutcome::Note(const Status& status, std::string_view doing) {
  if (status.ok()) return;
  if (status.code() == Code::kConflict) {
    Due(now_ + kAfterConflict);  // a watch event will show the change
  } else if (error_.ok() && status.code() != Code::kNotFound) {
    error_ = status.Within(doing);
  }
}

reconcile::ReconcileResult StepOutcome::Result() const {
  reconcile::ReconcileResult result = reconcile::ReconcileResult::Failed(error_);
  if (due_) result.again = std::max<Duration>(*due_ - now_, Duration(0));
  return result;
}

}  // namespace nos::controllers
