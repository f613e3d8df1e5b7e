#include "controllers/pending/event_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace nos::controllers {

void EventQueue::Add(kube::EventNote note) {
  constexpr size_t kMaxNotes = 10'000, kMaxMessage = 1000;
  note.message = Shortened(note.message, kMaxMessage);
  if (notes_.size() == kMaxNotes) notes_.pop_front();
  notes_.push_back(std::move(note));
}

Time EventQueue::Due() const {
  const Time verdicts = verdicts_.NextChange().value_or(Time::max());
  return std::max(pace_.next(), notes_.empty() ? verdicts : Time{});
}

// Alternates between Events and verdicts, so that neither starves the other.
void EventQueue::Publish(const reconcile::Listers& view, kube::Client& client, const Clock& clock) {
  const Time begin = clock.Now();
  kube::Client hasty = client.Within(pace_.patience());
  const bool verdicts = verdicts_.NextChange().value_or(Time::max()) <= begin;
  notes_published_last_ = !notes_.empty() && (!verdicts || !notes_published_last_);
  if (notes_published_last_) {
    PublishNotes(hasty, begin);
  } else {
    verdicts_.PublishPortion(view, hasty, events_, begin);
  }
  const Time end = clock.Now();
  pace_.Took(end - begin, end);
}

// Events that timed out are queued again, as long as the time limit can still grow.
void EventQueue::PublishNotes(kube::Client& client, Time now) {
  const auto end = notes_.begin() + static_cast<std::ptrdiff_t>(std::min(notes_.size(), writes_));
  std::vector<kube::EventNote> portion(notes_.begin(), end);
  notes_.erase(notes_.begin(), end);
  const std::vector<Status> written = events_.RecordAll(client, portion, now);
  for (size_t i = 0; i < portion.size(); ++i) {
    const bool again = written[i].code() == Code::kDeadline && !pace_.most_patient();
    if (again) notes_.push_back(std::move(portion[i]));
  }
}

}  // namespace nos::controllers
