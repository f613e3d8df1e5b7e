// Reads what the GPUs of a cluster cost from stored history, hour after hour.
//
//   History history({recorder, catalogue, prices}, id, "prod");
//   NOS_ASSIGN(const bool settled, history.Bill(from, to, ledger));   // from and to of one hour
//
// A call that begins where the previous one ended continues with its state; any other one reads the
// state anew. Internal to this library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "telemetryserver/cost/ledger.h"
#include "telemetryserver/cost/measured.h"
#include "telemetryserver/prices.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

class History {
 public:
  // All must outlive this object.
  struct Uses {
    Recorder& recorder;
    const gpu::Catalogue& catalogue;
    const PriceList& prices;
  };
  History(const Uses& uses, int64_t id, std::string cluster)
      : uses_(uses), id_(id), cluster_(std::move(cluster)) {}

  // Adds to the ledger. False: late samples of that time are stored, and not included yet. Errors:
  // see Archive.
  Result<bool> Bill(telemetry::Millis from, telemetry::Millis to, Ledger& ledger);
  // Number of GPUs at the end of the last call.
  size_t gpus() const;

 private:
  Result<std::vector<std::string>> SubjectsIn(telemetry::Millis from, telemetry::Millis to);
  Result<bool> Measure(telemetry::Millis from, telemetry::Millis to, Measured& measured);

  const Uses uses_;
  const int64_t id_;
  const std::string cluster_;
  std::unique_ptr<State> state_;
  telemetry::Millis at_ = -1;  // time of the state
};

}  // namespace nos::telemetryserver
