#include "telemetryserver/ingest/foreign_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kSilent = kDay;

class Owners {
 public:
  Owners(const Live& live, telemetry::Millis now, std::string_view node)
      : live_(live), since_(now - kSilent), node_(node) {}

  // The other node that has the subject; "": none.
  std::string Of(const std::string& subject) const {
    const std::string* owner = live_.state.NodeOf(subject);
    if (owner == nullptr || *owner == node_) return {};
    // Times of reports are not restored at a start, so all nodes count as silent from then on.
    const telemetry::Millis reported =
        std::max(live_.state.FreshAt("node/" + *owner), live_.opened);
    return reported < since_ ? std::string() : *owner;
  }
  // The first subject of another node, with its node; empty: none.
  std::pair<std::string, std::string> In(const telemetry::Record& record) const {
    std::pair<std::string, std::string> found;
    const auto look = [&](const std::string& subject) {
      if (!found.first.empty()) return;
      if (std::string owner = Of(subject); !owner.empty()) found = {subject, std::move(owner)};
    };
    if (const auto* readings = std::get_if<telemetry::Readings>(&record.what)) {
      look(readings->subject);
    } else if (const auto* happening = std::get_if<telemetry::Happening>(&record.what)) {
      look(happening->object);
    } else if (const auto* layout = std::get_if<telemetry::Layout>(&record.what)) {
      for (const telemetry::Gpu& gpu : layout->gpus) {
        look(SubjectOf(gpu));
        for (const telemetry::Instance& instance : gpu.instances) look(SubjectOf(instance));
      }
    }
    return found;
  }

 private:
  const Live& live_;
  const telemetry::Millis since_;
  const std::string_view node_;
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

std::vector<telemetry::Refused> TakeForeign(const Live& live, telemetry::Millis now,
                                            telemetry::Envelope& envelope) {
  std::vector<telemetry::Refused> foreign;
  const std::string_view node = telemetry::NodeOfSource(envelope.source);
  if (node.empty()) return foreign;
  const Owners owners(live, now, node);
  std::vector<telemetry::Record> own;
  own.reserve(envelope.records.size());
  for (size_t i = 0; i < envelope.records.size(); ++i) {
    telemetry::Record& record = envelope.records[i];
    const auto [subject, owner] = owners.In(record);
    if (subject.empty()) {
      own.push_back(std::move(record));
    } else {
      foreign.push_back(
          {PositionOf(i, envelope.refused),
           fmt::format("{}: node {} has reported {} before", record.kind, owner, subject)});
    }
  }
  envelope.records = std::move(own);
  return foreign;
}

}  // namespace nos::telemetryserver
