// What the parts of the scheduler share. Internal to it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controllers/scheduler.h"
#include "kube/event_recorder.h"

namespace nos::controllers {

struct Scheduler::Shared {
  // What became of one telling.
  struct Told {
    Telling telling;
    bool ok = true;
  };
  kube::Inbox<Answer> answers;
  kube::Inbox<std::vector<Told>> told;
  kube::Inbox<std::pair<std::string, std::string>> not_evicted;  // keys: who, for whom
  kube::Inbox<std::pair<CutWrite, Status>> cut;
  kube::EventRecorder events{"nos-scheduler"};  // of whoever tells
  std::function<void()> wake;
  void Wake() const {
    if (wake) wake();
  }
};

inline bool RunsSomewhere(const std::shared_ptr<const cluster::Pod>& pod) {
  return pod != nullptr && !pod->node_name.empty() && !pod->Finished();
}

}  // namespace nos::controllers
