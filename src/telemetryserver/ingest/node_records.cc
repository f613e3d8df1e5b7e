#include "telemetryserver/ingest/node_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/function_ref.h"
#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kSilent = kDay;
constexpr size_t kMaxReturned = 100;  // the others mostly have the same reason

void EachSubject(const telemetry::Record& record, FunctionRef<void(const std::string&)> visit) {
  if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
    visit(readings->subject);
  } else if (const auto* happening = std::get_if<telemetry::Happening>(&record.what)) {
    visit(happening->object);
  } else if (const auto* layout = std::get_if<telemetry::Layout>(&record.what)) {
    for (const telemetry::Gpu& gpu : layout->gpus) {
      visit(SubjectOf(gpu));
      for (const telemetry::Instance& instance : gpu.instances) visit(SubjectOf(instance));
    }
  }
}

class NodeRecords {
 public:
  NodeRecords(const Live* live, NodeSubjects& subjects, telemetry::Millis now, std::string node)
      : live_(live), subjects_(subjects), now_(now), node_(std::move(node)) {}

  // "": the record is accepted.
  std::string WhyRefused(const telemetry::Record& record) {
    std::string why;
    EachSubject(record, [&](const std::string& subject) {
      if (why.empty()) why = WhyRefused(subject);
    });
    return why;
  }

 private:
  std::string WhyRefused(const std::string& subject) {
    const std::string* owner = live_ == nullptr ? nullptr : live_->state.NodeOf(subject);
    if (owner != nullptr && *owner == node_) return {};
    if (owner != nullptr && !IsSilent(*owner)) {
      return fmt::format("node {} has reported {} before", *owner, subject);
    }
    if (subjects_.Admit(node_, subject, now_)) return {};
    return fmt::format("node {} has reported {} new GPUs and instances within a day", node_,
                       NodeSubjects::kMaxSubjects);
  }
  // Times of reports are not restored at a start, so all nodes count as silent from then on.
  bool IsSilent(const std::string& node) const {
    const telemetry::Millis reported =
        std::max(live_->state.FreshAt("node/" + node), live_->opened);
    return reported < now_ - kSilent;
  }

  const Live* const live_;
  NodeSubjects& subjects_;
  const telemetry::Millis now_;
  const std::string node_;
};

// The position in the envelope of its `index`th valid record.
size_t PositionOf(size_t index, const std::vector<telemetry::Refused>& invalid) {
  for (const telemetry::Refused& one : invalid) {
    if (one.record > index) break;
    ++index;
  }
  return index;
}

}  // namespace

std::vector<telemetry::Refused> TakeRefused(Live* live, telemetry::Millis now,
                                            telemetry::Envelope& envelope) {
  std::vector<telemetry::Refused> refused;
  const std::string_view node = telemetry::NodeOfSource(envelope.source);
  if (node.empty()) return refused;
  NodeSubjects first;
  NodeRecords of_node(live, live == nullptr ? first : live->node_subjects, now, std::string(node));
  std::vector<telemetry::Record> accepted;
  accepted.reserve(envelope.records.size());
  for (size_t i = 0; i < envelope.records.size(); ++i) {
    telemetry::Record& record = envelope.records[i];
    const std::string why = of_node.WhyRefused(record);
    if (why.empty()) {
      accepted.push_back(std::move(record));
    } else if (refused.size() < kMaxReturned) {
      refused.push_back({PositionOf(i, envelope.refused), fmt::format("{}: {}", record.kind, why)});
    }
  }
  envelope.records = std::move(accepted);
  return refused;
}

}  // namespace nos::telemetryserver
